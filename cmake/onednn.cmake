# tensord_onednn: the system's oneDNN, or what scripts/onednn made in the folder TENSORD_ONEDNN.
add_library(tensord_onednn INTERFACE)
if(TENSORD_ONEDNN)
  if(NOT EXISTS ${TENSORD_ONEDNN}/lib/libdnnl.a)
    message(FATAL_ERROR "TENSORD_ONEDNN: no lib/libdnnl.a in ${TENSORD_ONEDNN}; scripts/onednn makes it")
  endif()
  # Code in the archive that nothing calls names what was left out.
  target_link_libraries(tensord_onednn INTERFACE ${TENSORD_ONEDNN}/lib/libdnnl.a OpenMP::OpenMP_CXX -Wl,--gc-sections)
  target_include_directories(tensord_onednn SYSTEM INTERFACE ${TENSORD_ONEDNN}/include)
else()
  # Not by find_package: Debian's package file asks for OpenCL, which the CPU library does not use.
  find_library(DNNL_LIBRARY dnnl REQUIRED)
  find_path(DNNL_INCLUDE dnnl.hpp REQUIRED)
  target_link_libraries(tensord_onednn INTERFACE ${DNNL_LIBRARY})
endif()
