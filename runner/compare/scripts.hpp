#pragma once
// Texts that are part of the program: what runs inside the sides, and parts of the page.
#include <string_view>

namespace mlenv::compare {

std::string_view training_script();
std::string_view loading_script();
std::string_view isolation_script();
std::string_view command_script();
/// recipes/catalog/compare-tools.yaml
std::string_view tools_recipe();
std::string_view page_style();
std::string_view page_script();
/// Chart.js; empty where mlenv was built without it.
std::string_view chart_library();

}  // namespace mlenv::compare
