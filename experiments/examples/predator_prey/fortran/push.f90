! The adjoint as a callback. SPDX-License-Identifier: MIT
module push
    use, intrinsic :: iso_c_binding
    use backsweep
    use model
    implicit none
    type :: sweep
        real(real64) :: s(3), a(3), tape(3), slot(3, 0:slots - 1)
    end type
contains
    function gradient_push(start) result(a)
        real(real64), intent(in) :: start(3)
        real(real64) :: a(3)
        type(backsweep_callbacks) :: callbacks
        type(sweep), target :: w
        type(c_ptr) :: schedule
        w%s = start
        callbacks%otherwise = c_funloc(obey)
        schedule = backsweep_create(backsweep_options(steps=steps, slots=slots))
        if (backsweep_run(schedule, callbacks, c_loc(w)) /= backsweep_ok) call quit(backsweep_error_text())
        call backsweep_destroy(schedule)
        a = w%a
    end function

    function obey(now, user) bind(c) result(answer)
        type(backsweep_action), intent(in) :: now
        type(c_ptr), value :: user
        integer(c_int) :: answer
        integer(c_int64_t) :: i
        type(sweep), pointer :: w
        call c_f_pointer(user, w)
        select case (now%verb)
        case (backsweep_advance); do i = now%first, now%last - 1; call step(w%s); end do
        case (backsweep_record, backsweep_tape); w%tape = w%s; call step(w%s)
        case (backsweep_reverse); call reverse_step(w%tape, w%a)
        case (backsweep_save); w%slot(:, now%to%index) = w%s
        case (backsweep_load, backsweep_take); w%s = w%slot(:, now%from%index)
        case (backsweep_turn); w%a = seed(w%s)
        end select
        answer = 0
    end function
end module push
