# tensord_lapack: the library behind kernels/linalg/lapack.h. The default is OpenBLAS's OpenMP build as a shared
# library. TENSORD_STATIC uses Debian's static reference libraries, of which 0.8 MB is linked, because OpenBLAS's static
# library adds 25 MB of kernels. The reference libraries are position-independent and need one function of the Fortran
# runtime, which kernels/linalg/lapack.cpp defines.
if(TENSORD_STATIC)
  set(lapack_default reference)
else()
  set(lapack_default openblas)
endif()
set(TENSORD_LAPACK ${lapack_default} CACHE STRING "What LAPACK is linked: openblas (shared, OpenMP) or reference (archives)")
add_library(tensord_lapack INTERFACE)
if(TENSORD_LAPACK STREQUAL "openblas")
  find_library(OPENBLAS_OPENMP_LIBRARY openblas PATH_SUFFIXES openblas-openmp REQUIRED)
  target_link_libraries(tensord_lapack INTERFACE ${OPENBLAS_OPENMP_LIBRARY})
elseif(TENSORD_LAPACK STREQUAL "reference")
  find_library(LAPACK_ARCHIVE liblapack_pic.a REQUIRED)
  find_library(BLAS_ARCHIVE libblas.a PATH_SUFFIXES blas REQUIRED)
  target_link_libraries(tensord_lapack INTERFACE ${LAPACK_ARCHIVE} ${BLAS_ARCHIVE})
  target_compile_definitions(tensord_lapack INTERFACE TENSORD_REFERENCE_LAPACK)
else()
  message(FATAL_ERROR "TENSORD_LAPACK: ${TENSORD_LAPACK}: openblas and reference are there")
endif()
