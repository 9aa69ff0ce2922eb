# The engine as a library to embed: tensors, autograd, modules, TorchScript and all kernels in one shared object, so that
# operators, which register themselves, need no linker flags. The daemon links the layers statically instead.
add_library(tensord_engine SHARED $<TARGET_OBJECTS:tensord_kernel_loops> $<TARGET_OBJECTS:tensord_other_kernels>)
add_library(tensord::engine ALIAS tensord_engine)
list(JOIN engine_layers "," layer_list)
target_link_libraries(tensord_engine PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,${layer_list}>)
# Also where layers are dependencies of each other.
set_target_properties(tensord_engine PROPERTIES LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${layer_list}"
                      LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION 0.1 EXPORT_NAME engine)
target_link_libraries(tensord_engine PRIVATE tensord_onednn tensord_lapack ${HWY_LIBRARY})
# For <tensord/ops.h> and other public headers, which include headers such as "core/ops/value.h".
target_include_directories(tensord_engine INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                           $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>
                           $<BUILD_INTERFACE:${TENSORD_GENERATED}> $<INSTALL_INTERFACE:include>
                           $<INSTALL_INTERFACE:include/tensord>)
target_compile_features(tensord_engine INTERFACE cxx_std_20)
if(TENSORD_STATIC)
  # Exported symbols would be kept, together with the parts of oneDNN that they use and that scripts/onednn left out.
  target_link_options(tensord_engine PRIVATE LINKER:--exclude-libs,libdnnl.a LINKER:--exclude-libs,liblapack_pic.a
                      LINKER:--exclude-libs,libblas.a LINKER:--no-undefined)
endif()
if(TENSORD_SANITIZE)
  # Large, and not installed.
  set_target_properties(tensord_engine PROPERTIES EXCLUDE_FROM_ALL TRUE)
endif()
