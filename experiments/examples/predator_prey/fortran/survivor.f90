! The adjoint in a loop that survives kill -9: start the program again and it goes on. SPDX-License-Identifier: MIT
module survivor
    use, intrinsic :: iso_c_binding
    use backsweep
    use backsweep_sweep
    use model
    implicit none
contains
    function gradient_kept(start, dies_at) result(gradient)
        real(real64), intent(in) :: start(3)
        integer, intent(in) :: dies_at
        real(real64) :: gradient(3), tape(3)
        real(real64), target :: a(3), s(3)
        integer(c_int64_t) :: i
        integer :: count
        type(backsweep_action) :: now
        type(c_ptr) :: sweep
        s = start
        sweep = backsweep_sweep_open(backsweep_options(steps=steps, slots=slots), backsweep_sweep_options(commit_links=50), &
            state=(/backsweep_double_piece(s, 3)/), adjoint=(/backsweep_double_piece(a, 3)/), folder='survivor_scratch')
        if (.not. c_associated(sweep)) call quit(backsweep_error_text())
        write (*, '(a)') backsweep_sweep_recovery_text(sweep)
        count = 0
        do while (backsweep_sweep_more(sweep, now))
            count = count + 1
            if (count == dies_at) stop 9
            select case (now%verb)
            case (backsweep_advance); do i = now%first, now%last - 1; call step(s); end do
            case (backsweep_record, backsweep_tape); tape = s; call step(s)
            case (backsweep_reverse); call reverse_step(tape, a)
            case (backsweep_turn); a = seed(s)
            end select
        end do
        if (now%verb /= backsweep_done) call quit(backsweep_error_text())
        if (backsweep_sweep_close(sweep, .true.) /= backsweep_ok) call quit(backsweep_error_text())
        gradient = a
    end function
end module survivor

! With a number: dies at that action.
program survives
    use, intrinsic :: iso_c_binding, only: c_int64_t
    use model
    use stored
    use survivor
    implicit none

    real(real64), parameter :: start(3) = (/1.3_real64, 0.7_real64, 1.1_real64/)
    integer(c_int64_t), parameter :: bits(3) = 0
    character(16) :: word
    integer :: dies_at
    logical :: same_bits

    dies_at = 0
    if (command_argument_count() > 0) then
        call get_command_argument(1, word)
        read (word, *) dies_at
    end if
    same_bits = all(transfer(gradient_kept(start, dies_at), bits) == transfer(gradient_stored(start), bits))
    write (*, '(a, i0, 2a)') 'Fortran, ', steps, ' steps, killed or not: the gradient ', &
        trim(merge('has the bits of the stored one', 'differs from the stored one   ', same_bits))
    if (.not. same_bits) stop 1
end program survives
