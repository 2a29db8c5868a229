! The adjoint as a subroutine that is called for every action. SPDX-License-Identifier: MIT
module push
    use, intrinsic :: iso_c_binding
    use backsweep
    use model
    implicit none
    real(real64), private :: s(3), adjoint(3), tape(3), slot(3, 0:slots - 1)
contains
    function gradient_push(start) result(a)
        real(real64), intent(in) :: start(3)
        real(real64) :: a(3)
        s = start
        if (backsweep_run(backsweep_options(steps=steps, slots=slots), obey) /= backsweep_ok) &
            call quit(backsweep_error_text())
        a = adjoint
    end function

    subroutine obey(now)
        type(backsweep_action), intent(in) :: now
        integer(c_int64_t) :: i
        select case (now%verb)
        case (backsweep_advance); do i = now%first, now%last - 1; call step(s); end do
        case (backsweep_record, backsweep_tape); tape = s; call step(s)
        case (backsweep_reverse); call reverse_step(tape, adjoint)
        case (backsweep_save); slot(:, now%to%index) = s
        case (backsweep_load, backsweep_take); s = slot(:, now%from%index)
        case (backsweep_turn); adjoint = seed(s)
        end select
    end subroutine
end module push
