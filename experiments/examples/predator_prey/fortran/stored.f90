! The adjoint with every state stored. SPDX-License-Identifier: MIT
module stored
    use model
    implicit none
contains
    function gradient_stored(start) result(a)
        real(real64), intent(in) :: start(3)
        real(real64) :: a(3), s(3), states(3, steps)
        integer :: i
        s = start
        do i = 1, steps
            states(:, i) = s
            call step(s)
        end do
        a = seed(s)
        do i = steps, 1, -1
            call reverse_step(states(:, i), a)
        end do
    end function
end module stored
