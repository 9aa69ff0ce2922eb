# tensord_onednn: the system's oneDNN, or the build of scripts/onednn in the folder TENSORD_ONEDNN.
add_library(tensord_onednn INTERFACE)
if(TENSORD_ONEDNN)
  if(NOT EXISTS ${TENSORD_ONEDNN}/lib/libdnnl.a)
    message(FATAL_ERROR "TENSORD_ONEDNN: no lib/libdnnl.a in ${TENSORD_ONEDNN}; scripts/onednn makes it")
  endif()
  # Unused code in the static library refers to parts that the build left out.
  target_link_libraries(tensord_onednn INTERFACE ${TENSORD_ONEDNN}/lib/libdnnl.a OpenMP::OpenMP_CXX -Wl,--gc-sections)
  target_include_directories(tensord_onednn SYSTEM INTERFACE ${TENSORD_ONEDNN}/include)
else()
  # find_package does not work, because Debian's package file requires OpenCL, which the CPU library does not use.
  find_library(DNNL_LIBRARY dnnl REQUIRED)
  find_path(DNNL_INCLUDE dnnl.hpp REQUIRED)
  target_link_libraries(tensord_onednn INTERFACE ${DNNL_LIBRARY})
endif()
