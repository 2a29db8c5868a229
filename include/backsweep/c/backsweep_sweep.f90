! Whole sweeps for Fortran 2003: backsweep/c/backsweep_sweep.h, which says what everything means, as a module. Compile it
! after backsweep.f90 with your own compiler and link backsweep_chain. Sizes, counts and C strings are taken care of.
! SPDX-License-Identifier: MIT
module backsweep_sweep
    use, intrinsic :: iso_c_binding, only: c_char, c_double, c_float, c_int, c_int32_t, c_int64_t, c_loc, c_null_char, &
        c_null_ptr, c_ptr, c_size_t
    use backsweep
    implicit none
    private

    enum, bind(c)
        enumerator :: backsweep_bytes = 0, backsweep_floats = 1, backsweep_doubles = 2
    end enum
    enum, bind(c)
        enumerator :: backsweep_uncompressed = 0, backsweep_zstd = 1
    end enum
    enum, bind(c)
        enumerator :: backsweep_exact = 0, backsweep_float32 = 1, backsweep_bfloat16 = 2
    end enum
    enum, bind(c)
        enumerator :: backsweep_from_start = 0, backsweep_from_forward = 1, backsweep_from_reverse = 2
    end enum

    type, bind(c) :: backsweep_memory
        type(c_ptr) :: data = c_null_ptr
        integer(c_size_t) :: bytes = 0
        integer(c_int32_t) :: holds = backsweep_bytes
        integer(c_int32_t) :: reserved = 0
    end type

    ! What backsweep_sweep_open takes as arguments (memory, names, the schedule) is left alone here.
    type, bind(c) :: backsweep_sweep_options
        integer(c_size_t) :: size = 0
        type(c_ptr) :: schedule = c_null_ptr
        type(c_ptr) :: state = c_null_ptr
        integer(c_size_t) :: state_count = 0
        type(c_ptr) :: adjoint = c_null_ptr
        integer(c_size_t) :: adjoint_count = 0
        type(c_ptr) :: sums = c_null_ptr
        integer(c_size_t) :: sums_count = 0
        type(c_ptr) :: tape = c_null_ptr
        integer(c_size_t) :: tape_count = 0
        type(c_ptr) :: folder = c_null_ptr
        type(c_ptr) :: name = c_null_ptr
        integer(c_int64_t) :: run = 0
        integer(c_int64_t) :: number = 0
        integer(c_int64_t) :: commit_links = 0
        real(c_double) :: commit_seconds = 0
        integer(c_int64_t) :: ram_slots = 0
        integer(c_int64_t) :: disk_slots = 0
        integer(c_int64_t) :: buffers = 0
        integer(c_int32_t) :: compression = backsweep_uncompressed
        integer(c_int32_t) :: precision = backsweep_exact
        integer(c_int32_t) :: not_durable = 0
        integer(c_int32_t) :: no_sums = 0
    end type

    type, bind(c) :: backsweep_recovery
        integer(c_size_t) :: size = 0
        integer(c_int64_t) :: at = 0
        integer(c_int64_t) :: states = 0
        integer(c_int32_t) :: from = backsweep_from_start
        integer(c_int32_t) :: reserved = 0
    end type

    interface
        function backsweep_sweep_next(sweep, action) bind(c, name='backsweep_sweep_next') result(status)
            import :: backsweep_action, c_int, c_ptr
            type(c_ptr), value :: sweep
            type(backsweep_action), intent(out) :: action
            integer(c_int) :: status
        end function

        function backsweep_sweep_finish(sweep, steps) bind(c, name='backsweep_sweep_finish') result(status)
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value :: sweep
            integer(c_int64_t), value :: steps
            integer(c_int) :: status
        end function

        function backsweep_sweep_commit(sweep) bind(c, name='backsweep_sweep_commit') result(status)
            import :: c_int, c_ptr
            type(c_ptr), value :: sweep
            integer(c_int) :: status
        end function

        function c_open(options) bind(c, name='backsweep_sweep_open') result(sweep)
            import :: backsweep_sweep_options, c_ptr
            type(backsweep_sweep_options), intent(in) :: options
            type(c_ptr) :: sweep
        end function

        function c_recovery(sweep, recovery) bind(c, name='backsweep_sweep_recovery') result(status)
            import :: backsweep_recovery, c_int, c_ptr
            type(c_ptr), value :: sweep
            type(backsweep_recovery), intent(inout) :: recovery
            integer(c_int) :: status
        end function

        function c_recovery_text(sweep) bind(c, name='backsweep_sweep_recovery_text') result(text)
            import :: c_ptr
            type(c_ptr), value :: sweep
            type(c_ptr) :: text
        end function

        function c_close(sweep, finished) bind(c, name='backsweep_sweep_close') result(status)
            import :: c_int, c_int32_t, c_ptr
            type(c_ptr), value :: sweep
            integer(c_int32_t), value :: finished
            integer(c_int) :: status
        end function
    end interface

    public :: backsweep_bytes, backsweep_floats, backsweep_doubles, backsweep_uncompressed, backsweep_zstd, backsweep_exact, &
        backsweep_float32, backsweep_bfloat16, backsweep_from_start, backsweep_from_forward, backsweep_from_reverse
    public :: backsweep_memory, backsweep_sweep_options, backsweep_recovery
    public :: backsweep_double_piece, backsweep_float_piece, backsweep_sweep_open, backsweep_sweep_next, &
        backsweep_sweep_more, backsweep_sweep_finish, backsweep_sweep_commit, backsweep_sweep_recovery, &
        backsweep_sweep_recovery_text, backsweep_sweep_close

contains

    ! A new sweep; not c_associated if that fails. Without `folder` nothing is written, without `sums` options%no_sums is
    ! set. The memory that the pieces name must stay where it is while the sweep is open.
    function backsweep_sweep_open(schedule, options, state, adjoint, sums, tape, folder, name, family, rule, first) &
        result(sweep)
        type(backsweep_options), intent(in) :: schedule
        type(backsweep_sweep_options), intent(in) :: options
        type(backsweep_memory), intent(in) :: state(:), adjoint(:)
        type(backsweep_memory), intent(in), optional :: sums(:), tape(:)
        character(*), intent(in), optional :: folder, name, family, rule, first
        type(c_ptr) :: sweep
        type(backsweep_options), target :: made_from
        type(backsweep_sweep_options) :: given
        type(backsweep_memory), allocatable, target :: x(:), a(:), s(:), t(:)
        character(kind=c_char), target :: folder_text(4096), name_text(256), family_text(64), rule_text(64), first_text(64)
        made_from = schedule
        made_from%size = size(transfer(schedule, (/c_null_char/)), kind=c_size_t)
        if (present(family)) made_from%family = backsweep_to_c(family, family_text)
        if (present(rule)) made_from%rule = backsweep_to_c(rule, rule_text)
        if (present(first)) made_from%first = backsweep_to_c(first, first_text)
        given = options
        given%size = size(transfer(options, (/c_null_char/)), kind=c_size_t)
        given%schedule = c_loc(made_from)
        call take(state, x, given%state, given%state_count)
        call take(adjoint, a, given%adjoint, given%adjoint_count)
        if (present(sums)) then
            call take(sums, s, given%sums, given%sums_count)
        else
            given%no_sums = 1
        end if
        if (present(tape)) call take(tape, t, given%tape, given%tape_count)
        if (present(folder)) given%folder = backsweep_to_c(folder, folder_text)
        if (present(name)) given%name = backsweep_to_c(name, name_text)
        sweep = c_open(given)
    end function

    ! The next action of the caller, and whether it is one: .false. at done, and where backsweep_sweep_next would not
    ! answer backsweep_ok.
    function backsweep_sweep_more(sweep, action) result(more)
        type(c_ptr), intent(in) :: sweep
        type(backsweep_action), intent(out) :: action
        logical :: more
        more = backsweep_sweep_next(sweep, action) == backsweep_ok
        if (more) more = action%verb /= backsweep_done
    end function

    function backsweep_sweep_recovery(sweep, recovery) result(status)
        type(c_ptr), intent(in) :: sweep
        type(backsweep_recovery), intent(out) :: recovery
        integer(c_int) :: status
        recovery%size = size(transfer(recovery, (/c_null_char/)), kind=c_size_t)
        status = c_recovery(sweep, recovery)
    end function

    function backsweep_sweep_recovery_text(sweep) result(text)
        type(c_ptr), intent(in) :: sweep
        character(:), allocatable :: text
        text = backsweep_from_c(c_recovery_text(sweep))
    end function

    ! finished: whether what the sweep gave has been used; its files go then.
    function backsweep_sweep_close(sweep, finished) result(status)
        type(c_ptr), intent(in) :: sweep
        logical, intent(in) :: finished
        integer(c_int) :: status
        status = c_close(sweep, merge(1_c_int32_t, 0_c_int32_t, finished))
    end function

    ! The memory of the n numbers of an array of any rank, which must be a target.
    function backsweep_double_piece(x, n) result(piece)
        real(c_double), intent(in), target :: x(*)
        integer, intent(in) :: n
        type(backsweep_memory) :: piece
        piece%data = c_loc(x(1))
        piece%bytes = n*8_c_size_t
        piece%holds = backsweep_doubles
    end function

    function backsweep_float_piece(x, n) result(piece)
        real(c_float), intent(in), target :: x(*)
        integer, intent(in) :: n
        type(backsweep_memory) :: piece
        piece%data = c_loc(x(1))
        piece%bytes = n*4_c_size_t
        piece%holds = backsweep_floats
    end function

    subroutine take(from, to, pointer, count)
        type(backsweep_memory), intent(in) :: from(:)
        type(backsweep_memory), allocatable, target, intent(out) :: to(:)
        type(c_ptr), intent(out) :: pointer
        integer(c_size_t), intent(out) :: count
        allocate (to(max(1, size(from))))
        to(1:size(from)) = from
        count = size(from, kind=c_size_t)
        pointer = c_loc(to(1))
    end subroutine
end module backsweep_sweep
