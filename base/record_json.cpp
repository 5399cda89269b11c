#include "base/record_json.hpp"

namespace mlenv {

void check_kind(const nlohmann::json& root, std::string_view shown, const RecordKind& kind) {
  const bool has = root.is_object() && root.contains("schema") && root["schema"].is_string();
  const std::string found = has ? root["schema"].get<std::string>() : "";
  if (found == kind.schema) return;
  if (found.starts_with(kind.schema.substr(0, kind.schema.rfind('/') + 1))) {
    throw usage_error("facts-version", "`{}` is {}, this mlenv reads {}", shown, printable(found),
                      kind.schema)
        .hint("use the mlenv that wrote it, or write it anew with this one");
  }
  throw usage_error("bad-facts", "`{}` holds no {}", shown, kind.noun)
      .because(found.empty() ? "it names no schema" : fmt::format("it is `{}`", printable(found)))
      .hint(std::string(kind.hint));
}

}  // namespace mlenv
