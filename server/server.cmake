# The daemon's libraries from bottom to top: metrics, scheduler, executor, repository, training, transport.
find_package(absl CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
find_package(spdlog REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(nlohmann_json REQUIRED)
tensord_prefer_archives()
add_subdirectory(${CMAKE_SOURCE_DIR}/protos ${CMAKE_BINARY_DIR}/protos)

tensord_layer(tensord_server_config server/config tensord_base CLI11::CLI11 spdlog::spdlog
              nlohmann_json::nlohmann_json)
tensord_layer(tensord_server_pbtxt server/config/pbtxt tensord_server_config tensord_protos)
tensord_layer(tensord_server_metrics server/metrics tensord_tensor prometheus-cpp::core)
# Its functions replace those of the C library and of OpenSSL that gRPC calls.
tensord_layer(tensord_server_connections server/connections tensord_base OpenSSL::SSL)
tensord_layer(tensord_server_memory server/memory tensord_tensor)
tensord_layer(tensord_server_tracing server/tracing tensord_server_metrics tensord_server_config PkgConfig::HTTPLIB
              nlohmann_json::nlohmann_json)
tensord_layer(tensord_server_scheduler server/scheduler tensord_server_metrics)
tensord_layer(tensord_server_executor server/executor tensord_server_scheduler tensord_server_tracing
              tensord_jit_runtime absl::inlined_vector absl::status)
find_package(Boost 1.74 REQUIRED)  # only Beast's HTTP parser, which is header-only
tensord_layer(tensord_server_fetch server/fetch tensord_distributed Boost::headers nlohmann_json::nlohmann_json
              OpenSSL::SSL)
target_compile_definitions(tensord_server_fetch PRIVATE TENSORD_VERSION="${PROJECT_VERSION}")
# Inputs of image files. Without them the daemon has no image decoders.
if(TENSORD_IMAGES)
  tensord_layer(tensord_server_images server/images tensord_server_executor tensord_vision)
endif()
tensord_layer(tensord_server_repository server/repository tensord_server_executor tensord_server_pbtxt)
tensord_layer(tensord_server_training server/training tensord_server_repository tensord_files
              nlohmann_json::nlohmann_json OpenSSL::Crypto)
if(TENSORD_IMAGES)
  target_link_libraries(tensord_server_training PUBLIC tensord_vision)
  target_compile_definitions(tensord_server_training PRIVATE TENSORD_IMAGES=1)
endif()
find_package(ZLIB REQUIRED)
tensord_layer(tensord_server_http server/http tensord_tensor Boost::headers ZLIB::ZLIB)
tensord_layer(tensord_server_web server/web tensord_server_training tensord_server_http PkgConfig::HTTPLIB
              nlohmann_json::nlohmann_json)
# The status page is compiled in, with the library that draws its charts.
find_file(CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js NO_DEFAULT_PATH)
if(NOT CHART_JS)
  message(FATAL_ERROR "No /usr/share/javascript/chart.js/chart.min.js: install the package libjs-chart.js (scripts/setup build)")
endif()
file(GLOB page_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/server/web/page/*)
list(FILTER page_files EXCLUDE REGEX "/README\\.md$")
include(embed_page)
embed_page(tensord_server_web ${CMAKE_BINARY_DIR}/server/web/page_files.cpp ${page_files} ${CHART_JS})
tensord_layer(tensord_server_transport server/transport tensord_server_training tensord_server_memory
              tensord_server_connections
              tensord_server_web tensord_protos absl::strings nlohmann_json::nlohmann_json PkgConfig::RE2 OpenSSL::SSL)
# The OpenAPI description of the REST protocol is compiled in.
set(OPENAPI_FILE ${CMAKE_SOURCE_DIR}/server/rest/openapi.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${OPENAPI_FILE})
file(READ ${OPENAPI_FILE} OPENAPI)
configure_file(${CMAKE_SOURCE_DIR}/server/rest/openapi.cpp.in ${CMAKE_BINARY_DIR}/server/rest/openapi.cpp @ONLY)
tensord_layer(tensord_server_rest server/rest tensord_server_transport nlohmann_json::nlohmann_json)
target_sources(tensord_server_rest PRIVATE ${CMAKE_BINARY_DIR}/server/rest/openapi.cpp)
tensord_layer(tensord_server_daemon server/daemon tensord_server_rest)
add_library(tensord_server INTERFACE)
target_link_libraries(tensord_server INTERFACE tensord_server_daemon tensord_server_config tensord_server_fetch)
if(TENSORD_IMAGES)
  target_link_libraries(tensord_server INTERFACE tensord_server_images)
  target_compile_definitions(tensord_server INTERFACE TENSORD_IMAGES=1)
endif()
