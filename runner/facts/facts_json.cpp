#include "base/record_json.hpp"
#include "runner/facts/facts.hpp"

namespace mlenv {
namespace {

constexpr RecordKind kKind = {"mlenv.facts/1", "facts of a host",
                              "`mlenv facts --json >FILE` writes them on their host"};

}  // namespace

std::string render_facts(const Facts& facts) {
  nlohmann::json root = RecordWriter::written(facts);
  root["schema"] = kKind.schema;
  return canonical(root);
}

Facts read_facts(std::string_view text, std::string_view shown) {
  const nlohmann::json root = parse_json(text, shown);
  check_kind(root, shown, kKind);
  Facts facts;
  RecordReader(shown, kKind).read(root, "", facts);
  return facts;
}

}  // namespace mlenv
