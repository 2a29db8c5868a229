! Schedules for Fortran 2003: the C face (backsweep/c/backsweep.h says what everything means) as a module.
! Compile this file with your own compiler and link backsweep_schedule. Lengths and C strings are taken care of: the
! field `size` of a type need not be set, and names are passed as arguments.
! SPDX-License-Identifier: MIT
module backsweep
    use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_double, c_f_pointer, c_funptr, c_int, c_int32_t, c_int64_t, &
        c_loc, c_null_char, c_null_funptr, c_null_ptr, c_ptr, c_size_t
    implicit none
    private

    ! What a call answers.
    enum, bind(c)
        enumerator :: backsweep_ok = 0, backsweep_invalid_argument = 1, backsweep_schedule_error = 2, &
            backsweep_failure = 3, backsweep_stopped = 4, backsweep_store_error = 5
    end enum

    ! What to do.
    enum, bind(c)
        enumerator :: backsweep_advance = 0, backsweep_record = 1, backsweep_tape = 2, backsweep_reverse = 3, &
            backsweep_save = 4, backsweep_load = 5, backsweep_take = 6, backsweep_restart = 7, backsweep_stow = 8, &
            backsweep_fetch = 9, backsweep_drop = 10, backsweep_move = 11, backsweep_turn = 12, backsweep_done = 13
    end enum

    enum, bind(c)
        enumerator :: backsweep_device = 0, backsweep_pinned = 1, backsweep_ram = 2, backsweep_disk = 3
    end enum

    ! How the last link of an open-ended schedule becomes known.
    enum, bind(c)
        enumerator :: backsweep_closed = 0, backsweep_ahead = 1, backsweep_met = 2, &
            backsweep_late = 3
    end enum

    type, bind(c) :: backsweep_slot
        integer(c_int32_t) :: tier = backsweep_ram
        integer(c_int32_t) :: index = -1
    end type

    ! Links are counted from 0: link i leads from x_i to x_{i+1}, and [first, last) does not hold `last`.
    type, bind(c) :: backsweep_action
        integer(c_int32_t) :: verb = backsweep_done
        type(backsweep_slot) :: from
        type(backsweep_slot) :: to
        integer(c_int32_t) :: reserved = 0
        integer(c_int64_t) :: first = 0
        integer(c_int64_t) :: last = 0
    end type

    type, bind(c) :: backsweep_level
        integer(c_int32_t) :: tier = backsweep_ram
        integer(c_int32_t) :: reserved = 0
        integer(c_int64_t) :: slots = 0
        real(c_double) :: write = 0
        real(c_double) :: read = 0
    end type

    ! `family`, `rule` and `first` are arguments of backsweep_create. The other pointers are c_loc of arrays of
    ! backsweep_level, real(c_double) and integer(c_int64_t).
    type, bind(c) :: backsweep_options
        integer(c_size_t) :: size = 0
        type(c_ptr) :: family = c_null_ptr
        integer(c_int64_t) :: steps = 0
        integer(c_int64_t) :: slots = 0
        integer(c_int64_t) :: period = 0
        type(c_ptr) :: rule = c_null_ptr
        integer(c_int32_t) :: no_loss = 0
        integer(c_int32_t) :: needs_state = 0
        type(c_ptr) :: first = c_null_ptr
        integer(c_int64_t) :: align = 0
        integer(c_int64_t) :: ram_slots = 0
        integer(c_int64_t) :: segments = 0
        integer(c_int64_t) :: depth = 0
        integer(c_int64_t) :: tape_units = 0
        integer(c_int32_t) :: restart = 0
        integer(c_int32_t) :: reserved = 0
        type(c_ptr) :: levels = c_null_ptr
        integer(c_size_t) :: level_count = 0
        real(c_double) :: advance_cost = 0
        real(c_double) :: reverse_cost = 0
        type(c_ptr) :: costs = c_null_ptr
        type(c_ptr) :: sizes = c_null_ptr
        type(c_ptr) :: forward_time = c_null_ptr
        type(c_ptr) :: backward_time = c_null_ptr
        type(c_ptr) :: state_bytes = c_null_ptr
        type(c_ptr) :: tape_bytes = c_null_ptr
        type(c_ptr) :: forward_overhead = c_null_ptr
        type(c_ptr) :: backward_overhead = c_null_ptr
        integer(c_int64_t) :: budget = 0
    end type

    type, bind(c) :: backsweep_stored
        integer(c_int64_t) :: step = 0
        type(backsweep_slot) :: slot
    end type

    ! Each is c_funloc of a procedure with the interface backsweep_callback.
    type, bind(c) :: backsweep_callbacks
        integer(c_size_t) :: size = 0
        type(c_funptr) :: advance = c_null_funptr
        type(c_funptr) :: record = c_null_funptr
        type(c_funptr) :: tape = c_null_funptr
        type(c_funptr) :: reverse = c_null_funptr
        type(c_funptr) :: save = c_null_funptr
        type(c_funptr) :: load = c_null_funptr
        type(c_funptr) :: take = c_null_funptr
        type(c_funptr) :: restart = c_null_funptr
        type(c_funptr) :: stow = c_null_funptr
        type(c_funptr) :: fetch = c_null_funptr
        type(c_funptr) :: drop = c_null_funptr
        type(c_funptr) :: move = c_null_funptr
        type(c_funptr) :: turn = c_null_funptr
        type(c_funptr) :: otherwise = c_null_funptr
    end type

    ! The pointers are c_loc of arrays of real(c_double) and integer(c_int64_t).
    type, bind(c) :: backsweep_machine
        integer(c_size_t) :: size = 0
        real(c_double) :: advance = 0
        real(c_double) :: record = 0
        real(c_double) :: reverse = 0
        type(c_ptr) :: advance_of_link = c_null_ptr
        type(c_ptr) :: record_of_link = c_null_ptr
        type(c_ptr) :: reverse_of_link = c_null_ptr
        real(c_double) :: write(0:3) = 0
        real(c_double) :: read(0:3) = 0
        integer(c_int64_t) :: state_bytes = 0
        integer(c_int64_t) :: tape_bytes = 0
        type(c_ptr) :: bytes_of_state = c_null_ptr
        type(c_ptr) :: bytes_of_tape = c_null_ptr
        integer(c_int64_t) :: steps = 0
        integer(c_int32_t) :: ending = backsweep_closed
        integer(c_int32_t) :: reserved = 0
    end type

    ! Index the arrays with backsweep_ram and so on.
    type, bind(c) :: backsweep_prediction
        integer(c_size_t) :: size = 0
        integer(c_int64_t) :: actions = 0
        integer(c_int64_t) :: advances = 0
        integer(c_int64_t) :: recorded = 0
        integer(c_int64_t) :: reversed = 0
        integer(c_int64_t) :: writes(0:3) = 0
        integer(c_int64_t) :: reads(0:3) = 0
        integer(c_int64_t) :: peak_slots(0:3) = 0
        integer(c_int64_t) :: peak_bytes(0:3) = 0
        real(c_double) :: time = 0
    end type

    abstract interface
        function backsweep_callback(action, user) bind(c) result(answer)
            import :: backsweep_action, c_int, c_ptr
            type(backsweep_action), intent(in) :: action
            type(c_ptr), value :: user
            integer(c_int) :: answer
        end function

        subroutine backsweep_obey(action)
            import :: backsweep_action
            type(backsweep_action), intent(in) :: action
        end subroutine
    end interface

    interface backsweep_run
        module procedure run_callbacks, run_plainly
    end interface

    interface
        function backsweep_next(schedule, action) bind(c, name='backsweep_next') result(status)
            import :: backsweep_action, c_int, c_ptr
            type(c_ptr), value :: schedule
            type(backsweep_action), intent(out) :: action
            integer(c_int) :: status
        end function

        function backsweep_finish(schedule, steps) bind(c, name='backsweep_finish') result(status)
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value :: schedule
            integer(c_int64_t), value :: steps
            integer(c_int) :: status
        end function

        function backsweep_rewind(schedule) bind(c, name='backsweep_rewind') result(status)
            import :: c_int, c_ptr
            type(c_ptr), value :: schedule
            integer(c_int) :: status
        end function

        subroutine backsweep_destroy(schedule) bind(c, name='backsweep_destroy')
            import :: c_ptr
            type(c_ptr), value :: schedule
        end subroutine

        function c_create(options) bind(c, name='backsweep_create') result(schedule)
            import :: backsweep_options, c_ptr
            type(backsweep_options), intent(in) :: options
            type(c_ptr) :: schedule
        end function

        function c_complete(stored, count, slots, steps) bind(c, name='backsweep_complete') result(schedule)
            import :: backsweep_stored, c_int64_t, c_ptr, c_size_t
            type(backsweep_stored), intent(in) :: stored(*)
            integer(c_size_t), value :: count
            integer(c_int64_t), value :: slots, steps
            type(c_ptr) :: schedule
        end function

        function c_fill(schedule, actions, capacity, written) bind(c, name='backsweep_fill') result(status)
            import :: backsweep_action, c_int, c_ptr, c_size_t
            type(c_ptr), value :: schedule
            type(backsweep_action), intent(inout) :: actions(*)
            integer(c_size_t), value :: capacity
            integer(c_size_t), intent(out) :: written
            integer(c_int) :: status
        end function

        function c_run(schedule, callbacks, user) bind(c, name='backsweep_run') result(status)
            import :: backsweep_callbacks, c_int, c_ptr
            type(c_ptr), value :: schedule
            type(backsweep_callbacks), intent(in) :: callbacks
            type(c_ptr), value :: user
            integer(c_int) :: status
        end function

        function c_predict(schedule, machine, prediction) bind(c, name='backsweep_predict') result(status)
            import :: backsweep_machine, backsweep_prediction, c_int, c_ptr
            type(c_ptr), value :: schedule
            type(backsweep_machine), intent(in) :: machine
            type(backsweep_prediction), intent(inout) :: prediction
            integer(c_int) :: status
        end function

        function c_error_text() bind(c, name='backsweep_error_text') result(text)
            import :: c_ptr
            type(c_ptr) :: text
        end function

        function c_verb_name(verb) bind(c, name='backsweep_verb_name') result(text)
            import :: c_int32_t, c_ptr
            integer(c_int32_t), value :: verb
            type(c_ptr) :: text
        end function

        function c_version() bind(c, name='backsweep_version') result(text)
            import :: c_ptr
            type(c_ptr) :: text
        end function

        function c_strlen(text) bind(c, name='strlen') result(length)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: text
            integer(c_size_t) :: length
        end function
    end interface

    public :: backsweep_ok, backsweep_invalid_argument, backsweep_schedule_error, backsweep_failure, backsweep_stopped, &
        backsweep_store_error
    public :: backsweep_advance, backsweep_record, backsweep_tape, backsweep_reverse, backsweep_save, backsweep_load, &
        backsweep_take, backsweep_restart, backsweep_stow, backsweep_fetch, backsweep_drop, backsweep_move, &
        backsweep_turn, backsweep_done
    public :: backsweep_device, backsweep_pinned, backsweep_ram, backsweep_disk
    public :: backsweep_closed, backsweep_ahead, backsweep_met, backsweep_late
    public :: backsweep_slot, backsweep_action, backsweep_level, backsweep_options, backsweep_stored, &
        backsweep_callbacks, backsweep_machine, backsweep_prediction, backsweep_callback, backsweep_obey
    public :: backsweep_create, backsweep_complete, backsweep_next, backsweep_more, backsweep_fill, backsweep_run, &
        backsweep_finish, backsweep_rewind, backsweep_destroy, backsweep_predict, backsweep_error_text, &
        backsweep_verb_name, backsweep_version, backsweep_to_c, backsweep_from_c

contains

    ! A new schedule, to be destroyed by the caller; not c_associated if it cannot be made. `family` is revolve, `rule` and
    ! `first` are the family's own unless they are given.
    function backsweep_create(options, family, rule, first) result(schedule)
        type(backsweep_options), intent(in) :: options
        character(*), intent(in), optional :: family, rule, first
        type(c_ptr) :: schedule
        type(backsweep_options) :: given
        character(kind=c_char), target :: family_text(64), rule_text(64), first_text(64)
        given = options
        given%size = size(transfer(options, (/c_null_char/)), kind=c_size_t)
        if (present(family)) given%family = backsweep_to_c(family, family_text)
        if (present(rule)) given%rule = backsweep_to_c(rule, rule_text)
        if (present(first)) given%first = backsweep_to_c(first, first_text)
        schedule = c_create(given)
    end function

    function backsweep_complete(stored, slots, steps) result(schedule)
        type(backsweep_stored), intent(in) :: stored(:)
        integer(c_int64_t), intent(in) :: slots, steps
        type(c_ptr) :: schedule
        schedule = c_complete(stored, size(stored, kind=c_size_t), slots, steps)
    end function

    ! The next action, and whether it is one: .false. at done, and where backsweep_next would not answer backsweep_ok.
    function backsweep_more(schedule, action) result(more)
        type(c_ptr), intent(in) :: schedule
        type(backsweep_action), intent(out) :: action
        logical :: more
        more = backsweep_next(schedule, action) == backsweep_ok
        if (more) more = action%verb /= backsweep_done
    end function

    ! Up to size(actions) next actions into actions(1:written).
    function backsweep_fill(schedule, actions, written) result(status)
        type(c_ptr), intent(in) :: schedule
        type(backsweep_action), intent(inout) :: actions(:)
        integer(c_size_t), intent(out) :: written
        integer(c_int) :: status
        status = c_fill(schedule, actions, size(actions, kind=c_size_t), written)
    end function

    ! `user` is handed through to the callbacks: c_loc of what they work on.
    function run_callbacks(schedule, callbacks, user) result(status)
        type(c_ptr), intent(in) :: schedule
        type(backsweep_callbacks), intent(in) :: callbacks
        type(c_ptr), intent(in), optional :: user
        integer(c_int) :: status
        type(backsweep_callbacks) :: given
        type(c_ptr) :: handed
        given = callbacks
        given%size = size(transfer(callbacks, (/c_null_char/)), kind=c_size_t)
        handed = c_null_ptr
        if (present(user)) handed = user
        status = c_run(schedule, given, handed)
    end function

    ! A whole reversal by revolve: makes the schedule, calls obey(action) for every action but `done`, and destroys it.
    ! `obey` is a plain subroutine and works on variables of its module.
    function run_plainly(options, obey) result(status)
        type(backsweep_options), intent(in) :: options
        procedure(backsweep_obey) :: obey
        integer(c_int) :: status
        type(backsweep_action) :: action
        type(c_ptr) :: schedule
        status = backsweep_invalid_argument
        schedule = backsweep_create(options)
        if (.not. c_associated(schedule)) return
        do
            status = backsweep_next(schedule, action)
            if (status /= backsweep_ok .or. action%verb == backsweep_done) exit
            call obey(action)
        end do
        call backsweep_destroy(schedule)
    end function

    ! Without `machine` it counts only.
    function backsweep_predict(schedule, prediction, machine) result(status)
        type(c_ptr), intent(in) :: schedule
        type(backsweep_prediction), intent(out) :: prediction
        type(backsweep_machine), intent(in), optional :: machine
        integer(c_int) :: status
        type(backsweep_machine) :: given
        if (present(machine)) given = machine
        given%size = size(transfer(given, (/c_null_char/)), kind=c_size_t)
        prediction%size = size(transfer(prediction, (/c_null_char/)), kind=c_size_t)
        status = c_predict(schedule, given, prediction)
    end function

    ! What the last failed call of this thread wanted, what came and what to do; '' if none failed.
    function backsweep_error_text() result(text)
        character(:), allocatable :: text
        text = backsweep_from_c(c_error_text())
    end function

    ! 'advance' and so on.
    function backsweep_verb_name(verb) result(text)
        integer(c_int32_t), intent(in) :: verb
        character(:), allocatable :: text
        text = backsweep_from_c(c_verb_name(verb))
    end function

    function backsweep_version() result(text)
        character(:), allocatable :: text
        text = backsweep_from_c(c_version())
    end function

    ! `text` without trailing blanks as a C string in `room`; what does not fit is cut off, and no name is that long.
    function backsweep_to_c(text, room) result(pointer)
        character(*), intent(in) :: text
        character(kind=c_char), target, intent(out) :: room(:)
        type(c_ptr) :: pointer
        integer :: i, length
        length = min(len_trim(text), size(room) - 1)
        do i = 1, length
            room(i) = text(i:i)
        end do
        room(length + 1) = c_null_char
        pointer = c_loc(room(1))
    end function

    function backsweep_from_c(pointer) result(text)
        type(c_ptr), intent(in) :: pointer
        character(:), allocatable :: text
        character(kind=c_char), pointer :: letters(:)
        integer :: i
        call c_f_pointer(pointer, letters, (/c_strlen(pointer)/))
        allocate (character(size(letters)) :: text)
        do i = 1, size(letters)
            text(i:i) = letters(i)
        end do
    end function
end module backsweep
