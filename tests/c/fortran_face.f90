! The Fortran face: pull one by one and in bulk, push, prediction, completion, bad input; the chain of toy.h.
! SPDX-License-Identifier: MIT
module toy
    use, intrinsic :: iso_c_binding
    use backsweep
    implicit none

    real(c_double), parameter :: h = 0.013_c_double, p = 0.71_c_double, x0 = 1.37_c_double

    type :: sweep
        real(c_double) :: x = x0, tape = 0, a = 0, p_gradient = 0
        integer(c_int64_t) :: advances = 0, recorded = 0
        integer :: stop_at = -1
        real(c_double) :: slots(0:511) = 0
    end type

    integer :: failures = 0
    type(sweep), save :: plain

contains

    subroutine check(passed, what)
        logical, intent(in) :: passed
        character(*), intent(in) :: what
        if (passed) return
        failures = failures + 1
        write (*, '(2a)') 'failed: ', what
    end subroutine

    subroutine says(status, wanted, words)
        integer(c_int), intent(in) :: status
        integer, intent(in) :: wanted
        character(*), intent(in) :: words
        call check(status == wanted, 'the status of '//words)
        call check(index(backsweep_error_text(), words) > 0, words//' in: '//backsweep_error_text())
    end subroutine

    pure function link(x) result(y)
        real(c_double), intent(in) :: x
        real(c_double) :: y
        y = x/(1 + h*p*x)
    end function

    subroutine obey(s, action)
        type(sweep), intent(inout) :: s
        type(backsweep_action), intent(in) :: action
        real(c_double) :: stepped
        integer(c_int64_t) :: i
        select case (action%verb)
        case (backsweep_advance)
            do i = action%first, action%last - 1
                s%x = link(s%x)
            end do
            s%advances = s%advances + action%last - action%first
        case (backsweep_record, backsweep_tape)
            s%tape = s%x
            s%x = link(s%x)
            s%recorded = s%recorded + 1
        case (backsweep_reverse)
            stepped = 1 + h*p*s%tape
            s%p_gradient = s%p_gradient - s%a*h*(s%tape*s%tape)/(stepped*stepped)
            s%a = s%a/(stepped*stepped)
        case (backsweep_save)
            s%slots(action%to%index) = s%x
        case (backsweep_load, backsweep_take)
            s%x = s%slots(action%from%index)
        case (backsweep_stow)
            s%slots(action%to%index) = s%tape
        case (backsweep_fetch)
            s%tape = s%slots(action%from%index)
        case (backsweep_turn)
            s%a = 1
        case (backsweep_drop)
        case default
            call check(.false., 'unexpected verb '//backsweep_verb_name(action%verb))
        end select
    end subroutine

    function on_action(action, user) bind(c) result(answer)
        type(backsweep_action), intent(in) :: action
        type(c_ptr), value :: user
        integer(c_int) :: answer
        type(sweep), pointer :: s
        call c_f_pointer(user, s)
        answer = merge(5, 0, action%verb == s%stop_at)
        if (answer == 0) call obey(s, action)
    end function

    subroutine obey_plainly(action)
        type(backsweep_action), intent(in) :: action
        call obey(plain, action)
    end subroutine

    function options_of(steps, slots) result(options)
        integer(c_int64_t), intent(in) :: steps
        integer, intent(in) :: slots
        type(backsweep_options) :: options
        options%steps = steps
        options%slots = slots
    end function

    function same(s, t)
        type(sweep), intent(in) :: s, t
        logical :: same
        same = all(transfer((/s%a, s%p_gradient/), (/0_c_int64_t/)) == transfer((/t%a, t%p_gradient/), (/0_c_int64_t/)))
    end function

    subroutine check_closed_form(s, steps, what)
        type(sweep), intent(in) :: s
        integer(c_int64_t), intent(in) :: steps
        character(*), intent(in) :: what
        real(c_double) :: grown
        grown = 1 + real(steps, c_double)*h*p*x0
        call check(abs(s%a - 1/grown**2) <= 1e-13_c_double, what//': dJ/dx_0 is the closed form')
        call check(abs(s%p_gradient + real(steps, c_double)*h*x0**2/grown**2) <= 1e-12_c_double, &
            what//': dJ/dp is the closed form')
    end subroutine
end module toy

program fortran_face
    use, intrinsic :: iso_c_binding
    use, intrinsic :: ieee_arithmetic, only: ieee_quiet_nan, ieee_value
    use backsweep
    use toy
    implicit none

    integer(c_int64_t), parameter :: lengths(4) = (/0_c_int64_t, 1_c_int64_t, 2_c_int64_t, 97_c_int64_t/)
    integer :: k

    do k = 1, size(lengths)
        call gradients(lengths(k))
    end do
    call completion()
    call bad_input()
    if (failures > 0) stop 1
    write (*, '(3a)') 'Backsweep ', backsweep_version(), ': Fortran face passed'

contains

    function pulled(schedule) result(s)
        type(c_ptr), intent(in) :: schedule
        type(sweep) :: s
        type(backsweep_action) :: action
        do while (backsweep_next(schedule, action) == backsweep_ok)
            if (action%verb == backsweep_done) exit
            call obey(s, action)
        end do
    end function

    function pulled_in_bulk(schedule) result(s)
        type(c_ptr), intent(in) :: schedule
        type(sweep) :: s
        type(backsweep_action) :: actions(67)
        integer(c_size_t) :: i, written
        do
            if (backsweep_fill(schedule, actions, written) /= backsweep_ok) exit
            do i = 1, written
                if (actions(i)%verb == backsweep_done) return
                call obey(s, actions(i))
            end do
        end do
    end function

    function pushed(schedule) result(s)
        type(c_ptr), intent(in) :: schedule
        type(sweep), target :: s
        type(backsweep_callbacks) :: callbacks
        callbacks%otherwise = c_funloc(on_action)
        call check(backsweep_run(schedule, callbacks, c_loc(s)) == backsweep_ok, 'a run ends')
    end function

    function pushed_by_verb(schedule) result(s)
        type(c_ptr), intent(in) :: schedule
        type(sweep), target :: s
        type(backsweep_callbacks) :: callbacks
        callbacks%advance = c_funloc(on_action)
        callbacks%record = c_funloc(on_action)
        callbacks%tape = c_funloc(on_action)
        callbacks%reverse = c_funloc(on_action)
        callbacks%save = c_funloc(on_action)
        callbacks%load = c_funloc(on_action)
        callbacks%take = c_funloc(on_action)
        callbacks%stow = c_funloc(on_action)
        callbacks%fetch = c_funloc(on_action)
        callbacks%turn = c_funloc(on_action)
        call check(backsweep_run(schedule, callbacks, c_loc(s)) == backsweep_ok, 'a run ends')
    end function

    subroutine gradients(steps)
        integer(c_int64_t), intent(in) :: steps
        type(backsweep_options) :: options
        type(sweep) :: first
        first%recorded = -1
        options%steps = steps
        call gradients_of(backsweep_create(options, family='store_all'), steps, 'store_all', first)
        call gradients_of(backsweep_create(options_of(steps, 1)), steps, 'one slot', first)
        call gradients_of(backsweep_create(options_of(steps, 3), rule='longest'), steps, 'longest', first)
        options%period = 10
        call gradients_of(backsweep_create(options, family='periodic'), steps, 'periodic', first)
        plain = sweep()
        call check(backsweep_run(options_of(steps, 3), obey_plainly) == backsweep_ok, 'a plain run ends')
        call check(same(plain, first) .and. plain%recorded == steps, 'a plain run: the same bits')
    end subroutine

    subroutine gradients_of(schedule, steps, what, first)
        type(c_ptr), intent(in) :: schedule
        integer(c_int64_t), intent(in) :: steps
        character(*), intent(in) :: what
        type(sweep), intent(inout) :: first
        type(sweep) :: s
        integer :: way
        call check(c_associated(schedule), what//' is made')
        if (.not. c_associated(schedule)) return
        do way = 1, 4
            select case (way)
            case (1)
                s = pulled(schedule)
            case (2)
                s = pulled_in_bulk(schedule)
            case (3)
                s = pushed(schedule)
            case (4)
                s = pushed_by_verb(schedule)
            end select
            call check_closed_form(s, steps, what)
            call check(s%recorded == steps, what//': every link is recorded once')
            if (first%recorded < 0) first = s
            call check(same(s, first), what//': the same bits under every schedule')
            call check(backsweep_rewind(schedule) == backsweep_ok, what//': rewind')
        end do
        call check_prediction(schedule, steps, what, s)
        call says(backsweep_finish(schedule, steps), backsweep_schedule_error, 'finish')
        call backsweep_destroy(schedule)
    end subroutine

    subroutine check_prediction(schedule, steps, what, s)
        type(c_ptr), intent(in) :: schedule
        integer(c_int64_t), intent(in) :: steps
        character(*), intent(in) :: what
        type(sweep), intent(in) :: s
        type(backsweep_prediction) :: counted, priced
        type(backsweep_machine) :: machine
        real(c_double), allocatable, target :: advance_of_link(:)
        integer(c_int64_t) :: i
        call check(backsweep_predict(schedule, counted) == backsweep_ok, what//': counted')
        call check(counted%advances == s%advances .and. counted%recorded == steps, what//': counted as predicted')
        allocate (advance_of_link(max(steps, 1_c_int64_t)))
        advance_of_link = (/(0.5_c_double, i=1, size(advance_of_link))/)
        machine%advance_of_link = c_loc(advance_of_link(1))
        machine%read(backsweep_ram) = 0.25_c_double
        machine%state_bytes = 40
        machine%tape_bytes = 40
        call check(backsweep_predict(schedule, priced, machine) == backsweep_ok, what//': priced')
        call check(abs(4*priced%time - real(2*s%advances + counted%reads(backsweep_ram), c_double)) <= 0, &
            what//': priced as counted')
        call check(priced%peak_bytes(backsweep_ram) == 40*counted%peak_slots(backsweep_ram), &
            what//': bytes of the slots')
    end subroutine

    subroutine completion()
        type(backsweep_stored) :: stored(2)
        type(backsweep_callbacks) :: callbacks
        type(sweep), target :: s
        type(c_ptr) :: schedule
        integer :: i
        stored(1)%step = 7
        stored(1)%slot%index = 2
        stored(2)%slot%index = 0
        schedule = backsweep_complete(stored, 3_c_int64_t, 16_c_int64_t)
        call check(c_associated(schedule), 'complete: '//backsweep_error_text())
        s%slots(0) = x0
        s%slots(2) = x0
        do i = 1, 7
            s%slots(2) = link(s%slots(2))
        end do
        callbacks%otherwise = c_funloc(on_action)
        call check(backsweep_run(schedule, callbacks, c_loc(s)) == backsweep_ok, 'complete runs')
        call check_closed_form(s, 16_c_int64_t, 'complete')
        call backsweep_destroy(schedule)
    end subroutine

    subroutine not_made(schedule, words)
        type(c_ptr), intent(in) :: schedule
        character(*), intent(in) :: words
        call check(.not. c_associated(schedule), 'nothing is made: '//words)
        call says(backsweep_invalid_argument, backsweep_invalid_argument, words)
    end subroutine

    subroutine bad_input()
        type(backsweep_options) :: options
        type(backsweep_action) :: action
        type(backsweep_action) :: none(0)
        type(backsweep_callbacks) :: callbacks
        type(backsweep_machine) :: machine
        type(backsweep_prediction) :: prediction
        type(backsweep_stored) :: stored(1)
        type(sweep), target :: s
        type(c_ptr) :: schedule
        integer(c_size_t) :: written
        integer :: i
        call not_made(backsweep_create(options_of(5_c_int64_t, 0)), 'slots must be 1 or more')
        call not_made(backsweep_create(options_of(5_c_int64_t, -3)), 'came -3')
        call not_made(backsweep_create(options_of(-5_c_int64_t, 3)), 'steps must be 0 or more, came -5')
        call not_made(backsweep_create(options_of(huge(0_c_int64_t), 3)), '9223372036854775807')
        options%steps = 2_c_int64_t**62
        options%slots = 2_c_int64_t**40
        call not_made(backsweep_create(options), '2147483647')
        options%slots = 0
        call not_made(backsweep_create(options, family='store_all'), '2147483647')
        call not_made(backsweep_create(options, family='revolver'), '''revolver'' is not known')
        call not_made(backsweep_create(options, family=repeat('x', 1000)), 'is not known')
        call not_made(backsweep_create(options_of(5_c_int64_t, 3), rule='middle'), 'rule ''middle'' is not known')
        call not_made(backsweep_complete(stored(1:0), 3_c_int64_t, 16_c_int64_t), 'x_0')
        call not_made(backsweep_complete(stored, 3_c_int64_t, 16_c_int64_t), 'slot -1')

        plain = sweep()
        call says(backsweep_run(options_of(5_c_int64_t, 0), obey_plainly), backsweep_invalid_argument, &
            'slots must be 1 or more')
        call check(plain%recorded == 0, 'nothing is run without a schedule')

        schedule = c_null_ptr
        call says(backsweep_next(schedule, action), backsweep_invalid_argument, 'schedule is NULL')
        call says(backsweep_finish(schedule, 3_c_int64_t), backsweep_invalid_argument, 'schedule is NULL')
        call says(backsweep_rewind(schedule), backsweep_invalid_argument, 'schedule is NULL')
        call says(backsweep_run(schedule, callbacks), backsweep_invalid_argument, 'schedule is NULL')
        call says(backsweep_predict(schedule, prediction), backsweep_invalid_argument, 'schedule is NULL')
        call backsweep_destroy(schedule)

        schedule = backsweep_create(options_of(5_c_int64_t, 3))
        call says(backsweep_run(schedule, callbacks), backsweep_invalid_argument, 'callbacks.save is NULL')
        machine%advance = ieee_value(1.0_c_double, ieee_quiet_nan)
        call says(backsweep_predict(schedule, prediction, machine), backsweep_invalid_argument, &
            'machine.advance must be finite')
        machine%advance = 0
        machine%write(backsweep_disk) = -1
        call says(backsweep_predict(schedule, prediction, machine), backsweep_invalid_argument, &
            'machine.write must be finite')
        callbacks%otherwise = c_funloc(on_action)
        s%stop_at = backsweep_turn
        call says(backsweep_run(schedule, callbacks, c_loc(s)), backsweep_stopped, 'answered 5')
        call check(backsweep_fill(schedule, none, written) == backsweep_ok .and. written == 0, 'no room, no action')
        do i = 1, 1000
            call check(backsweep_next(schedule, action) == backsweep_ok, 'next')
        end do
        call check(action%verb == backsweep_done .and. action%to%index == -1, 'done is repeated for ever')
        call backsweep_destroy(schedule)
    end subroutine
end program fortran_face
