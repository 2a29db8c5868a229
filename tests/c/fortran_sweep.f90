! A Fortran program whose sweep is killed at every action and goes on in another process, with the same bits.
! SPDX-License-Identifier: MIT
module grid
    use, intrinsic :: iso_c_binding
    use backsweep
    use backsweep_sweep
    implicit none

    integer, parameter :: links = 17, nx = 3, ny = 2, killed = 86
    integer :: events = 0, dies_at = 0

    interface
        function fork() bind(c) result(pid)
            import :: c_int
            integer(c_int) :: pid
        end function
        function waitpid(pid, status, options) bind(c) result(answer)
            import :: c_int
            integer(c_int), value :: pid, options
            integer(c_int), intent(out) :: status
            integer(c_int) :: answer
        end function
        subroutine leave(status) bind(c, name='_exit')
            import :: c_int
            integer(c_int), value :: status
        end subroutine
    end interface

contains

    subroutine event()
        events = events + 1
        if (events == dies_at) call leave(int(killed, c_int))
    end subroutine

    ! u' = u + 0.1 sin(u + i/10), then shifted along x; p scales nothing but the gradient.
    subroutine step(u, i)
        real(c_double), intent(inout) :: u(nx, ny)
        integer(c_int64_t), intent(in) :: i
        u = cshift(u + 0.1_c_double*sin(u + 0.1_c_double*real(i, c_double)), 1, 1)
    end subroutine

    subroutine reverse_step(u, i, a, g)
        real(c_double), intent(in) :: u(nx, ny)
        integer(c_int64_t), intent(in) :: i
        real(c_double), intent(inout) :: a(nx, ny), g(ny)
        a = cshift(a, -1, 1)
        g = g + sum(a*u, 1)
        a = a*(1 + 0.1_c_double*cos(u + 0.1_c_double*real(i, c_double)))
    end subroutine

    subroutine start(u)
        real(c_double), intent(out) :: u(nx, ny)
        integer :: k
        u = reshape((/(0.3_c_double*k, k=1, nx*ny)/), (/nx, ny/))
    end subroutine

    subroutine by_hand(a, g)
        real(c_double), intent(out) :: a(nx, ny), g(ny)
        real(c_double) :: u(nx, ny, 0:links)
        integer :: i
        call start(u(:, :, 0))
        do i = 0, links - 1
            u(:, :, i + 1) = u(:, :, i)
            call step(u(:, :, i + 1), int(i, c_int64_t))
        end do
        a = cos(u(:, :, links))
        g = 0
        do i = links - 1, 0, -1
            call reverse_step(u(:, :, i), int(i, c_int64_t), a, g)
        end do
    end subroutine

    ! The program, whether it begins or goes on.
    subroutine sweep_over(folder, a, g, recovery)
        character(*), intent(in) :: folder
        real(c_double), intent(out), target :: a(nx, ny), g(ny)
        type(backsweep_recovery), intent(out) :: recovery
        real(c_double), target :: u(nx, ny), tape(nx, ny)
        type(backsweep_level), target :: levels(2)
        type(backsweep_action) :: now
        type(c_ptr) :: sweep
        character(:), allocatable :: text
        integer(c_int64_t) :: i
        integer(c_int) :: status
        levels(1)%slots = 1
        levels(2) = backsweep_level(tier=backsweep_disk, slots=3)
        call start(u)
        a = 0
        g = 0
        sweep = backsweep_sweep_open( &
            backsweep_options(steps=links, levels=c_loc(levels), level_count=2), &
            backsweep_sweep_options(run=4, number=1, commit_links=2, not_durable=1), folder=folder, family='tiered_revolve', &
            state=(/backsweep_double_piece(u, nx*ny)/), adjoint=(/backsweep_double_piece(a, nx*ny)/), &
            sums=(/backsweep_double_piece(g, ny)/))
        if (.not. c_associated(sweep)) then
            write (*, '(a)') backsweep_error_text()
            call leave(1_c_int)
        end if
        status = backsweep_sweep_recovery(sweep, recovery)
        do while (backsweep_sweep_more(sweep, now))
            call event()
            select case (now%verb)
            case (backsweep_advance)
                do i = now%first, now%last - 1
                    call step(u, i)
                end do
            case (backsweep_record, backsweep_tape)
                tape = u
                call step(u, now%first)
            case (backsweep_reverse)
                call reverse_step(tape, now%first, a, g)
            case (backsweep_turn)
                a = cos(u)
            end select
            call event()
        end do
        text = backsweep_sweep_recovery_text(sweep)
        if (now%verb /= backsweep_done .or. len(text) == 0) then
            write (*, '(a)') backsweep_error_text()
            call leave(1_c_int)
        end if
        call event()
        status = backsweep_sweep_close(sweep, .true.)
    end subroutine
end module grid

program fortran_sweep
    use grid
    implicit none
    character(64) :: folder
    real(c_double) :: a(nx, ny), g(ny), wanted_a(nx, ny), wanted_g(ny)
    type(backsweep_recovery) :: recovery
    integer(c_int) :: child, status, answer
    integer(c_int64_t), parameter :: bits(1) = 0
    integer :: kills, forward, reverse
    logical :: done

    child = fork()
    if (child == 0) call leave(0_c_int)
    answer = waitpid(child, status, 0_c_int)
    write (folder, '(a,i0)') '/tmp/backsweep-fortran-', child
    call by_hand(wanted_a, wanted_g)
    kills = 0
    forward = 0
    reverse = 0
    done = .false.
    do while (.not. done)
        kills = kills + 1
        child = fork()
        if (child == 0) then
            events = 0
            dies_at = kills
            call sweep_over(trim(folder), a, g, recovery)
            call leave(0_c_int)
        end if
        answer = waitpid(child, status, 0_c_int)
        done = status == 0
        if (.not. done .and. status /= killed*256) stop 2
        call sweep_over(trim(folder), a, g, recovery)
        if (any(transfer(a, bits) /= transfer(wanted_a, bits)) .or. any(transfer(g, bits) /= transfer(wanted_g, bits))) stop 3
        if (recovery%from == backsweep_from_forward) forward = forward + 1
        if (recovery%from == backsweep_from_reverse) reverse = reverse + 1
    end do
    write (*, '(a,i0,a,i0,a,i0,a)') 'Backsweep '//backsweep_version()//': ', kills - 1, ' kills, ', forward, ' went on forward, ', &
        reverse, ' in reverse'
    if (forward < 5 .or. reverse < 20) stop 4
    child = backsweep_folder_gone(trim(folder))
contains
    function backsweep_folder_gone(path) result(answer)
        character(*), intent(in) :: path
        integer(c_int) :: answer
        character(kind=c_char), target :: text(128)
        interface
            function rmdir(path) bind(c) result(answer)
                import :: c_int, c_ptr
                type(c_ptr), value :: path
                integer(c_int) :: answer
            end function
        end interface
        answer = rmdir(backsweep_to_c(path, text))
        if (answer /= 0) stop 5
    end function
end program fortran_sweep
