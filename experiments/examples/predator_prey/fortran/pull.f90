! The adjoint in a loop of its own that asks for the next action. SPDX-License-Identifier: MIT
module pull
    use, intrinsic :: iso_c_binding
    use backsweep
    use model
    implicit none
contains
    function gradient_pull(start) result(a)
        real(real64), intent(in) :: start(3)
        real(real64) :: a(3), s(3), tape(3), slot(3, 0:slots - 1)
        integer(c_int64_t) :: i
        type(backsweep_action) :: now
        type(c_ptr) :: schedule
        s = start
        schedule = backsweep_create(backsweep_options(steps=steps, slots=slots))
        if (.not. c_associated(schedule)) call quit(backsweep_error_text())
        do while (backsweep_more(schedule, now))
            select case (now%verb)
            case (backsweep_advance); do i = now%first, now%last - 1; call step(s); end do
            case (backsweep_record, backsweep_tape); tape = s; call step(s)
            case (backsweep_reverse); call reverse_step(tape, a)
            case (backsweep_save); slot(:, now%to%index) = s
            case (backsweep_load, backsweep_take); s = slot(:, now%from%index)
            case (backsweep_turn); a = seed(s)
            end select
        end do
        call backsweep_destroy(schedule)
    end function
end module pull
