#pragma once

namespace tensord {

// The folder of the test data, and the Python that has PyTorch. They are functions, so that only one object file
// contains this checkout's path and a compiler cache can share the others between checkouts.
const char* tests_folder();
const char* tests_python();

}  // namespace tensord
