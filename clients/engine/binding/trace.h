#pragma once

namespace tensord::python {

// Called where Python reads what a trace cannot follow: sizes and elements as Python's numbers.
void note_sizes_read();
void note_values_read();

}  // namespace tensord::python
