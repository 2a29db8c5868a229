! Prey x and predators y, x' = (p - y) x, y' = (x - 1) y, by the classical Runge-Kutta method, and its adjoint.
! SPDX-License-Identifier: MIT
module model
    implicit none

    integer, parameter :: real64 = kind(1d0), steps = 1000, slots = 8
    real(real64), parameter, private :: h = 0.01_real64

contains

    ! s = (x, y, p): step i -> i + 1. p does not change, so its adjoint is the gradient with respect to the parameter.
    subroutine step(s)
        real(real64), intent(inout) :: s(3)
        real(real64) :: k1(3), k2(3), k3(3), k4(3)
        k1 = rate(s)
        k2 = rate(s + h/2*k1)
        k3 = rate(s + h/2*k2)
        k4 = rate(s + h*k3)
        s = s + h/6*(k1 + 2*k2 + 2*k3 + k4)
    end subroutine

    ! s at step i; a: adjoint of step i + 1 -> of step i.
    subroutine reverse_step(s, a)
        real(real64), intent(in) :: s(3)
        real(real64), intent(inout) :: a(3)
        real(real64) :: s2(3), s3(3), s4(3), b1(3), b2(3), b3(3), b4(3)
        s2 = s + h/2*rate(s)
        s3 = s + h/2*rate(s2)
        s4 = s + h*rate(s3)
        b4 = back(s4, h/6*a)
        b3 = back(s3, h/3*a + h*b4)
        b2 = back(s2, h/3*a + h/2*b3)
        b1 = back(s, h/6*a + h/2*b2)
        a = a + b1 + b2 + b3 + b4
    end subroutine

    ! J at the last step.
    pure function objective(s) result(j)
        real(real64), intent(in) :: s(3)
        real(real64) :: j
        j = 0.5_real64*((s(1) - 2)**2 + (s(2) - 1)**2)
    end function

    ! Its gradient.
    pure function seed(s) result(a)
        real(real64), intent(in) :: s(3)
        real(real64) :: a(3)
        a = (/s(1) - 2, s(2) - 1, 0.0_real64/)
    end function

    subroutine quit(text)
        character(*), intent(in) :: text
        write (*, '(a)') text
        stop 1
    end subroutine

    pure function rate(s) result(k)
        real(real64), intent(in) :: s(3)
        real(real64) :: k(3)
        k = (/(s(3) - s(2))*s(1), (s(1) - 1)*s(2), 0.0_real64/)
    end function

    ! The transposed Jacobian of rate at s, times w.
    pure function back(s, w) result(b)
        real(real64), intent(in) :: s(3), w(3)
        real(real64) :: b(3)
        b = (/(s(3) - s(2))*w(1) + s(2)*w(2), (s(1) - 1)*w(2) - s(1)*w(1), s(1)*w(1)/)
    end function
end module model
