# The typed functions of the operators, which scripts/operators.py makes from kernels/*/*.ops. Everything that links
# tensord_ops is compiled after them.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(TENSORD_GENERATED ${CMAKE_BINARY_DIR}/generated)
include_directories(${TENSORD_GENERATED})

file(GLOB operator_lines CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/*/*.ops)
set(operator_functions)
set(operator_headers)
foreach(file ${operator_lines})
  get_filename_component(family ${file} DIRECTORY)
  get_filename_component(family ${family} NAME)
  list(APPEND operator_functions ${TENSORD_GENERATED}/ops/${family}.cpp)
  list(APPEND operator_headers ${TENSORD_GENERATED}/ops/${family}.h)
endforeach()
list(REMOVE_DUPLICATES operator_functions)
list(REMOVE_DUPLICATES operator_headers)
set(operator_methods)
foreach(part RANGE 1 4)
  list(APPEND operator_methods ${TENSORD_GENERATED}/methods_${part}.cpp)
endforeach()
set(operator_table ${TENSORD_GENERATED}/ops/declared.cpp)
list(APPEND operator_headers ${TENSORD_GENERATED}/tensord/ops.h ${TENSORD_GENERATED}/tensord/methods.h
     ${TENSORD_GENERATED}/tensord/method_list.h)
set(operator_script ${CMAKE_SOURCE_DIR}/scripts/operators)

# tensord_add_operators(): to be called where the targets below are made.
macro(tensord_add_operators)
  add_custom_command(
    OUTPUT ${operator_functions} ${operator_methods} ${operator_table} ${operator_headers}
    COMMAND ${Python3_EXECUTABLE} ${operator_script}.py ${TENSORD_GENERATED}
    DEPENDS ${operator_lines} ${operator_script}.py ${operator_script}/family.h ${operator_script}/ops.h
            ${operator_script}/methods.h
    COMMENT "Making the operators' functions" VERBATIM)
  add_custom_target(operator_functions DEPENDS ${operator_headers})
  target_sources(tensord_ops PRIVATE ${operator_functions} ${operator_table})
  target_sources(tensord_api PRIVATE ${operator_methods})
  add_dependencies(tensord_base operator_functions)
  set(part 0)
  foreach(file ${operator_functions})
    math(EXPR part "(${part} + 1) % 3")
    set_source_files_properties(${file} PROPERTIES UNITY_GROUP operators_${part})
  endforeach()
  set_source_files_properties(${operator_methods} PROPERTIES UNITY_GROUP methods)
endmacro()
