// Variations of a matrix: what tells them apart are their parameters, and what follows from those
// is not told again.
#include <algorithm>

#include "runner/changes/rules.hpp"
#include "runner/matrix/placeholders.hpp"

namespace mlenv::changes {
namespace {

/// Null unless both are variations.
struct Both {
  const RecordedVariation* from = nullptr;
  const RecordedVariation* to = nullptr;
  explicit operator bool() const { return from != nullptr && to != nullptr; }
};
Both variations(const Compared& here) {
  if (here.from_run() == nullptr) return {};
  const auto& from = here.from_run()->start.variation;
  const auto& to = here.to_run()->start.variation;
  if (!from || !to) return {};
  return {&*from, &*to};
}

/// Null where there is no parameter of that name.
const RecordedVariable* parameter_of(const RecordedVariation& variation, std::string_view name) {
  const auto found = std::find_if(variation.values.begin(), variation.values.end(),
                                  [&](const RecordedVariable& one) { return one.name == name; });
  return found == variation.values.end() ? nullptr : &*found;
}

std::optional<std::string> shown_parameter(const RecordedVariable* value) {
  if (value == nullptr) return std::nullopt;
  return value->value.value_or("a value that is not kept");
}

}  // namespace

void parameters(Compared& here) {
  const Both both = variations(here);
  if (!both) return;
  std::vector<std::string> names;
  for (const RecordedVariation* one : {both.from, both.to}) {
    for (const RecordedVariable& value : one->values) {
      if (std::find(names.begin(), names.end(), value.name) == names.end()) {
        names.push_back(value.name);
      }
    }
  }
  for (const std::string& name : names) {
    const RecordedVariable* const from = parameter_of(*both.from, name);
    const RecordedVariable* const to = parameter_of(*both.to, name);
    if (from != nullptr && to != nullptr && (!from->value || !to->value)) {
      const std::string why = "records do not keep secrets";
      here.leave_open("parameter " + name, why, why);
    } else if (shown_parameter(from) != shown_parameter(to)) {
      here.find("parameters",
                {shown_parameter(from), shown_parameter(to), {}, "parameter " + name});
    }
  }
}

bool are_of_one_matrix(const Compared& here) {
  const Both both = variations(here);
  return both && both.from->matrix == both.to->matrix;
}

bool tells_variation(const Compared& here, std::string_view variable) {
  const Both both = variations(here);
  if (!both) return false;
  if (variable == "MLENV_MATRIX" || variable == "MLENV_VARIATION" || variable == "MLENV_OUTPUT") {
    return true;
  }
  return parameter_of(*both.from, variable) != nullptr &&
         parameter_of(*both.to, variable) != nullptr;
}

bool is_own_folder(const Compared& here, std::string_view target) {
  return variations(here) && target == matrix::kOutputTarget;
}

}  // namespace mlenv::changes
