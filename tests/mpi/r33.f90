! SPDX-License-Identifier: MIT
!
! R33 in Fortran: sizes, positions and offsets beyond 32 bits through mpi_f08, on a sparse file of
! 5 GiB whose last 16 bytes go into GPU memory.
program r33
    use, intrinsic :: iso_c_binding
    use mpi_f08
    implicit none

    interface
        function gpu_alloc(kind, bytes) bind(C) result(memory)
            import :: c_int, c_size_t, c_ptr
            integer(c_int), value :: kind
            integer(c_size_t), value :: bytes
            type(c_ptr) :: memory
        end function
        subroutine gpu_copy(to, from, bytes) bind(C)
            import :: c_size_t, c_ptr
            type(c_ptr), value :: to, from
            integer(c_size_t), value :: bytes
        end subroutine
        subroutine gpu_free(kind, memory) bind(C)
            import :: c_int, c_ptr
            integer(c_int), value :: kind
            type(c_ptr), value :: memory
        end subroutine
    end interface

    integer(c_int), parameter :: device = 1
    integer(MPI_OFFSET_KIND), parameter :: file_size = 5368709120_MPI_OFFSET_KIND
    integer(c_size_t), parameter :: tail = 16
    character(len=16), target :: host
    character(len=1), pointer :: on_gpu(:)
    type(c_ptr) :: memory
    type(MPI_File) :: file
    type(MPI_Status) :: status
    integer(MPI_OFFSET_KIND) :: position, place
    integer :: bytes

    call MPI_Init()
    memory = gpu_alloc(device, tail)
    call c_f_pointer(memory, on_gpu, [tail])
    call MPI_File_open(MPI_COMM_WORLD, "r33.dat", MPI_MODE_RDWR, MPI_INFO_NULL, file)
    call MPI_File_get_size(file, position)
    call check("get_size", position == file_size)
    call MPI_File_seek(file, -int(tail, MPI_OFFSET_KIND), MPI_SEEK_END)
    call MPI_File_get_position(file, position)
    call check("get_position", position == file_size - tail)
    call MPI_File_get_byte_offset(file, position, place)
    call check("get_byte_offset", place == file_size - tail)

    call MPI_File_read(file, on_gpu, int(tail), MPI_BYTE, status)
    call MPI_Get_count(status, MPI_BYTE, bytes)
    call check("count of read", bytes == tail)
    host = ""
    call gpu_copy(c_loc(host), memory, tail)
    call check("data of read", host == "last of 5 GiB: 1")
    call MPI_File_get_position(file, position)
    call check("get_position behind it", position == file_size)

    call MPI_File_read_at_all(file, file_size - 8, on_gpu, int(tail), MPI_BYTE, status)
    call MPI_Get_count(status, MPI_BYTE, bytes)
    call check("count of read_at_all", bytes == 8)
    call gpu_copy(c_loc(host), memory, tail)
    call check("data of read_at_all", host(1:8) == "5 GiB: 1")
    call MPI_File_close(file)
    call gpu_free(device, memory)
    call MPI_Finalize()
    print "(a)", "R33 right"

contains

    subroutine check(what, right)
        character(len=*), intent(in) :: what
        logical, intent(in) :: right

        if (right) return
        print "(3a)", "R33: ", what, " is wrong"
        call MPI_Abort(MPI_COMM_WORLD, 1)
    end subroutine
end program
