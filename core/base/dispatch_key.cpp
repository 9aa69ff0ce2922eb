#include "core/base/dispatch_key.h"

namespace tensord {

const char* name_of(Functionality functionality) {
  switch (functionality) {
    case Functionality::kDense: return "Dense";
    case Functionality::kComplex: return "Complex";
    case Functionality::kQuantized: return "Quantized";
    case Functionality::kSparse: return "SparseCOO";
    case Functionality::kSparseCompressed: return "SparseCSR";
    case Functionality::kShapeInference: return "ShapeInference";
    case Functionality::kStepRecorder: return "StepRecorder";
    case Functionality::kADInplaceOrView: return "ADInplaceOrView";
    case Functionality::kAutograd: return "Autograd";
    case Functionality::kTracer: return "Tracer";
    case Functionality::kAutocast: return "Autocast";
  }
  return "";
}

}  // namespace tensord
