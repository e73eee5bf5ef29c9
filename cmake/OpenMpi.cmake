# The MPI library that the driver plugs into: Open MPI 4.1 with its internal headers.
#
#   hipio_mpi            target: the public interface (mpi.h, libmpi)
#   hipio_mpi_internal   target: the internal headers and libopen-pal as well; adio/host/ only
#   HIPIO_MPI_VERSION    "4.1.4"
#   HIPIO_MPICC, HIPIO_MPIEXEC, HIPIO_OMPI_INFO   the wrapper compiler and the tools beside it
#   HIPIO_ROMIO_DIR      folder of mca_io_romio321.so, or -NOTFOUND (needed to run, not to build)
include_guard(GLOBAL)

function(hipio_openmpi_missing reason)
  message(FATAL_ERROR "hipio: ${reason}\n"
    "The driver needs Open MPI 4.1 and its internal headers (Debian, Ubuntu: apt-get install "
    "libopenmpi-dev openmpi-bin; elsewhere: configure Open MPI with --with-devel-headers). "
    "Name another wrapper compiler with -DHIPIO_MPICC=..., or build without the driver with "
    "-DHIPIO_MPI=OFF.")
endfunction()

# A machine may have several MPI libraries; the names with the vendor in them can't be another's.
find_program(HIPIO_MPICC NAMES mpicc.openmpi ompi-cc mpicc
  DOC "Open MPI's wrapper compiler")
if(NOT HIPIO_MPICC)
  hipio_openmpi_missing("mpicc was not found.")
endif()
get_filename_component(hipio_mpi_bin ${HIPIO_MPICC} DIRECTORY)
find_program(HIPIO_MPIEXEC NAMES mpirun.openmpi mpiexec.openmpi mpirun mpiexec
  HINTS ${hipio_mpi_bin} NO_DEFAULT_PATH DOC "Open MPI's launcher")
find_program(HIPIO_OMPI_INFO NAMES ompi_info HINTS ${hipio_mpi_bin} NO_DEFAULT_PATH
  DOC "Open MPI's ompi_info")
mark_as_advanced(HIPIO_MPICC HIPIO_MPIEXEC HIPIO_OMPI_INFO)

function(hipio_openmpi_ask what out)
  execute_process(COMMAND ${HIPIO_MPICC} --showme:${what}
    OUTPUT_VARIABLE answer ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(failed)
    hipio_openmpi_missing("${HIPIO_MPICC} is not Open MPI's (it does not know --showme:${what}).")
  endif()
  separate_arguments(answer UNIX_COMMAND "${answer}")
  set(${out} "${answer}" PARENT_SCOPE)
endfunction()

hipio_openmpi_ask(incdirs hipio_mpi_includes)
hipio_openmpi_ask(libdirs hipio_mpi_libdirs)

# Some builds name the internal headers' folder in the wrapper's answer, some leave it to the reader.
find_path(HIPIO_MPI_PUBLIC_INCLUDE mpi.h PATHS ${hipio_mpi_includes} NO_DEFAULT_PATH)
find_path(HIPIO_MPI_INTERNAL_INCLUDE ompi/mca/io/io.h
  PATHS ${hipio_mpi_includes} ${HIPIO_MPI_PUBLIC_INCLUDE}/openmpi NO_DEFAULT_PATH)
find_library(HIPIO_MPI_LIBRARY mpi PATHS ${hipio_mpi_libdirs} NO_DEFAULT_PATH)
find_library(HIPIO_OPEN_PAL_LIBRARY open-pal PATHS ${hipio_mpi_libdirs} NO_DEFAULT_PATH)
mark_as_advanced(HIPIO_MPI_PUBLIC_INCLUDE HIPIO_MPI_INTERNAL_INCLUDE HIPIO_MPI_LIBRARY
  HIPIO_OPEN_PAL_LIBRARY)

if(NOT HIPIO_MPI_PUBLIC_INCLUDE OR NOT HIPIO_MPI_LIBRARY)
  hipio_openmpi_missing("mpi.h or libmpi was not found where ${HIPIO_MPICC} looks for them.")
endif()
if(NOT HIPIO_MPI_INTERNAL_INCLUDE OR NOT HIPIO_OPEN_PAL_LIBRARY)
  hipio_openmpi_missing("the internal headers (ompi/mca/io/io.h) or libopen-pal were not found "
    "where ${HIPIO_MPICC} looks for them.")
endif()

set(hipio_mpi_numbers "")
file(STRINGS ${HIPIO_MPI_PUBLIC_INCLUDE}/mpi.h hipio_mpi_lines
  REGEX "^#define OMPI_(MAJOR|MINOR|RELEASE)_VERSION[ \t]+[0-9]+")
foreach(part MAJOR MINOR RELEASE)
  if(NOT "${hipio_mpi_lines}" MATCHES "OMPI_${part}_VERSION[ \t]+([0-9]+)")
    hipio_openmpi_missing("${HIPIO_MPI_PUBLIC_INCLUDE}/mpi.h does not tell Open MPI's version.")
  endif()
  list(APPEND hipio_mpi_numbers ${CMAKE_MATCH_1})
endforeach()
list(JOIN hipio_mpi_numbers "." HIPIO_MPI_VERSION)
if(NOT HIPIO_MPI_VERSION MATCHES "^4\\.1\\.")
  hipio_openmpi_missing("${HIPIO_MPICC} is Open MPI ${HIPIO_MPI_VERSION}.")
endif()

add_library(hipio_mpi INTERFACE)
target_include_directories(hipio_mpi SYSTEM INTERFACE ${HIPIO_MPI_PUBLIC_INCLUDE})
target_link_libraries(hipio_mpi INTERFACE ${HIPIO_MPI_LIBRARY})

# libopen-pal changes its name with each incompatible Open MPI, libmpi does not: a component that
# needs it can't be loaded by another one.
add_library(hipio_mpi_internal INTERFACE)
target_include_directories(hipio_mpi_internal SYSTEM INTERFACE ${HIPIO_MPI_INTERNAL_INCLUDE})
target_link_libraries(hipio_mpi_internal INTERFACE hipio_mpi ${HIPIO_OPEN_PAL_LIBRARY})

if(HIPIO_OMPI_INFO AND NOT HIPIO_ROMIO_DIR)
  execute_process(COMMAND ${HIPIO_OMPI_INFO} --parsable --path pkglibdir
    OUTPUT_VARIABLE hipio_mpi_pkglibdir ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REGEX REPLACE "^path:pkglibdir:" "" hipio_mpi_pkglibdir "${hipio_mpi_pkglibdir}")
endif()
find_path(HIPIO_ROMIO_DIR mca_io_romio321.so
  PATHS ${hipio_mpi_pkglibdir} ${hipio_mpi_libdirs}
  PATH_SUFFIXES openmpi openmpi3 NO_DEFAULT_PATH
  DOC "folder of Open MPI's ROMIO component, mca_io_romio321.so")
message(STATUS "hipio: Open MPI ${HIPIO_MPI_VERSION} (${HIPIO_MPICC}), ROMIO in ${HIPIO_ROMIO_DIR}")
if(NOT HIPIO_ROMIO_DIR)
  message(WARNING "hipio: mca_io_romio321.so was not found: the driver is built, but Open MPI can't "
    "use it without its ROMIO component")
endif()
