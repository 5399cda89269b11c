#pragma once
// The program that imports, for the image's own Python: builder/imports/import_program.py.
#include <string_view>

namespace mlenv {

std::string_view import_program();

}  // namespace mlenv
