#pragma once

namespace tensord {

// Where the tests' own files lie, and the Python that has PyTorch. Functions, so that only one object knows this
// checkout's place, and a compiler cache can give the others to every checkout.
const char* tests_folder();
const char* tests_python();

}  // namespace tensord
