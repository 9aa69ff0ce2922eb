#include "tests/support/places.h"

namespace tensord {

const char* tests_folder() { return TENSORD_TEST_DATA; }
const char* tests_python() { return TENSORD_TEST_PYTHON; }

}  // namespace tensord
