! The three ways give the same bits, and a finite difference agrees. SPDX-License-Identifier: MIT
program predator_prey
    use, intrinsic :: iso_c_binding, only: c_int64_t
    use model
    use stored
    use pull
    use push
    implicit none

    real(real64), parameter :: start(3) = (/1.3_real64, 0.7_real64, 1.1_real64/), d = 1e-5_real64
    real(real64) :: by_store(3), by_pull(3), by_push(3), difference, plus(3), minus(3)
    logical :: right, same_bits
    integer :: k

    by_store = gradient_stored(start)
    by_pull = gradient_pull(start)
    by_push = gradient_push(start)
    right = .true.
    do k = 1, 3
        plus = start
        minus = start
        plus(k) = plus(k) + d
        minus(k) = minus(k) - d
        difference = (run(plus) - run(minus))/(plus(k) - minus(k))
        write (*, '(f20.16, a, f14.10)') by_pull(k), ', by a central difference ', difference
        ! The difference errs by about d^2 = 1e-10, and 1e-11 of rounding.
        if (.not. abs(by_pull(k) - difference) <= 1e-8_real64*abs(by_pull(k))) right = .false.
    end do
    same_bits = all(bits(by_pull) == bits(by_store)) .and. all(bits(by_push) == bits(by_store))
    write (*, '(a, i0, a, i0, 2a)') 'Fortran, ', steps, ' steps with ', slots, ' states: the gradient ', &
        trim(merge('has the bits of the stored one', 'differs from the stored one   ', same_bits))
    if (.not. (right .and. same_bits)) stop 1

contains

    function run(from) result(j)
        real(real64), intent(in) :: from(3)
        real(real64) :: j, s(3)
        integer :: i
        s = from
        do i = 1, steps
            call step(s)
        end do
        j = objective(s)
    end function

    function bits(a)
        real(real64), intent(in) :: a(3)
        integer(c_int64_t) :: bits(3)
        bits = transfer(a, bits)
    end function
end program predator_prey
