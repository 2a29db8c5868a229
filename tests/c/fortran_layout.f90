! The types and constants of the module are those of the header, field by field. SPDX-License-Identifier: MIT
program fortran_layout
    use, intrinsic :: iso_c_binding
    use backsweep
    implicit none

    interface
        function c_callback() bind(c) result(callback)
            import :: c_funptr
            type(c_funptr) :: callback
        end function
        function c_sizes(which) bind(c) result(bytes)
            import :: c_int64_t
            integer(c_int64_t), value :: which
            integer(c_int64_t) :: bytes
        end function
        function c_sees_action(seen) bind(c) result(equal)
            import :: backsweep_action, c_int
            type(backsweep_action), intent(in) :: seen
            integer(c_int) :: equal
        end function
        function c_sees_options(seen) bind(c) result(equal)
            import :: backsweep_options, c_int
            type(backsweep_options), intent(in) :: seen
            integer(c_int) :: equal
        end function
        function c_sees_level(seen) bind(c) result(equal)
            import :: backsweep_level, c_int
            type(backsweep_level), intent(in) :: seen
            integer(c_int) :: equal
        end function
        function c_sees_stored(seen) bind(c) result(equal)
            import :: backsweep_stored, c_int
            type(backsweep_stored), intent(in) :: seen
            integer(c_int) :: equal
        end function
        function c_sees_callbacks(seen, last) bind(c) result(equal)
            import :: backsweep_callbacks, c_int, c_int32_t
            type(backsweep_callbacks), intent(in) :: seen
            integer(c_int32_t), value :: last
            integer(c_int) :: equal
        end function
        function c_sees_machine(seen) bind(c) result(equal)
            import :: backsweep_machine, c_int
            type(backsweep_machine), intent(in) :: seen
            integer(c_int) :: equal
        end function
        function c_sees_prediction(seen) bind(c) result(equal)
            import :: backsweep_prediction, c_int
            type(backsweep_prediction), intent(in) :: seen
            integer(c_int) :: equal
        end function
        function c_sees_constants(verbs, tiers, statuses, endings) bind(c) result(equal)
            import :: c_int, c_int32_t
            integer(c_int32_t), intent(in) :: verbs(*), tiers(*), statuses(*), endings(*)
            integer(c_int) :: equal
        end function
    end interface

    type(backsweep_action), target :: action
    type(backsweep_options), target :: options
    type(backsweep_level) :: level
    type(backsweep_stored), target :: stored
    type(backsweep_callbacks), target :: callbacks
    type(backsweep_machine), target :: machine
    type(backsweep_prediction), target :: prediction
    character, parameter :: bytes(1) = (/' '/)
    integer :: failures, k
    failures = 0

    call same(size(transfer(action, bytes)) == c_sizes(0_c_int64_t), 'size of backsweep_action')
    call same(size(transfer(options, bytes)) == c_sizes(1_c_int64_t), 'size of backsweep_options')
    call same(size(transfer(stored, bytes)) == c_sizes(2_c_int64_t), 'size of backsweep_stored')
    call same(size(transfer(callbacks, bytes)) == c_sizes(3_c_int64_t), 'size of backsweep_callbacks')
    call same(size(transfer(machine, bytes)) == c_sizes(4_c_int64_t), 'size of backsweep_machine')
    call same(size(transfer(prediction, bytes)) == c_sizes(5_c_int64_t), 'size of backsweep_prediction')

    call same(size(transfer(level, bytes)) == c_sizes(6_c_int64_t), 'size of backsweep_level')
    action = backsweep_action(backsweep_restart, backsweep_slot(backsweep_disk, 1), &
        backsweep_slot(backsweep_pinned, 2), 3, 2_c_int64_t**40, 2_c_int64_t**41)
    call same(c_sees_action(action) /= 0, 'backsweep_action')
    options%size = 1
    options%family = c_loc(options)
    options%steps = 2
    options%slots = 3
    options%period = 4
    options%rule = c_loc(options)
    options%no_loss = 5
    options%needs_state = 6
    options%first = c_loc(options)
    options%align = 7
    options%ram_slots = 8
    options%segments = 9
    options%depth = 10
    options%tape_units = 11
    options%restart = 12
    options%reserved = 13
    options%levels = c_loc(options)
    options%level_count = 14
    options%advance_cost = 15
    options%reverse_cost = 16
    options%sizes = c_loc(options)
    options%backward_time = c_loc(options)
    options%tape_bytes = c_loc(options)
    options%backward_overhead = c_loc(options)
    options%budget = 17
    call same(c_sees_options(options) /= 0, 'backsweep_options')
    level = backsweep_level(backsweep_disk, 1, 2_c_int64_t, 3.0_c_double, 4.0_c_double)
    call same(c_sees_level(level) /= 0, 'backsweep_level')
    stored%step = 1
    stored%slot = backsweep_slot(backsweep_device, 2)
    call same(c_sees_stored(stored) /= 0, 'backsweep_stored')
    do k = 0, 13
        callbacks = only(k)
        callbacks%size = 1
        call same(c_sees_callbacks(callbacks, int(k, c_int32_t)) /= 0, 'backsweep_callbacks')
    end do
    machine%size = 1
    machine%advance = 2
    machine%record = 3
    machine%reverse = 4
    machine%advance_of_link = c_loc(machine)
    machine%reverse_of_link = c_loc(machine)
    machine%write(backsweep_device) = 5
    machine%write(backsweep_disk) = 6
    machine%read(backsweep_device) = 7
    machine%read(backsweep_disk) = 8
    machine%state_bytes = 9
    machine%tape_bytes = 10
    machine%bytes_of_tape = c_loc(machine)
    machine%steps = 11
    machine%ending = backsweep_late
    machine%reserved = 12
    call same(c_sees_machine(machine) /= 0, 'backsweep_machine')
    prediction%size = 1
    prediction%actions = 2
    prediction%advances = 3
    prediction%recorded = 4
    prediction%reversed = 5
    prediction%writes = (/6, 0, 0, 7/)
    prediction%reads = (/8, 0, 0, 9/)
    prediction%peak_slots = (/10, 0, 0, 11/)
    prediction%peak_bytes = (/12, 0, 0, 13/)
    prediction%time = 14
    call same(c_sees_prediction(prediction) /= 0, 'backsweep_prediction')
    call same(c_sees_constants( &
        (/backsweep_advance, backsweep_record, backsweep_tape, backsweep_reverse, backsweep_save, backsweep_load, &
          backsweep_take, backsweep_restart, backsweep_stow, backsweep_fetch, backsweep_drop, backsweep_move, &
          backsweep_turn, backsweep_done/), &
        (/backsweep_device, backsweep_pinned, backsweep_ram, backsweep_disk/), &
        (/backsweep_ok, backsweep_invalid_argument, backsweep_schedule_error, backsweep_failure, backsweep_stopped/), &
        (/backsweep_closed, backsweep_ahead, backsweep_met, backsweep_late/)) /= 0, 'the constants')
    if (failures > 0) stop 1
    write (*, '(3a)') 'Backsweep ', backsweep_version(), ': layout of the Fortran face passed'

contains

    subroutine same(equal, what)
        logical, intent(in) :: equal
        character(*), intent(in) :: what
        if (equal) return
        failures = failures + 1
        write (*, '(2a)') 'differs from the header: ', what
    end subroutine

    function only(verb) result(one)
        integer, intent(in) :: verb
        type(backsweep_callbacks) :: one
        select case (verb)
        case (backsweep_advance)
            one%advance = c_callback()
        case (backsweep_record)
            one%record = c_callback()
        case (backsweep_tape)
            one%tape = c_callback()
        case (backsweep_reverse)
            one%reverse = c_callback()
        case (backsweep_save)
            one%save = c_callback()
        case (backsweep_load)
            one%load = c_callback()
        case (backsweep_take)
            one%take = c_callback()
        case (backsweep_restart)
            one%restart = c_callback()
        case (backsweep_stow)
            one%stow = c_callback()
        case (backsweep_fetch)
            one%fetch = c_callback()
        case (backsweep_drop)
            one%drop = c_callback()
        case (backsweep_move)
            one%move = c_callback()
        case (backsweep_turn)
            one%turn = c_callback()
        case default
            one%otherwise = c_callback()
        end select
    end function
end program fortran_layout
