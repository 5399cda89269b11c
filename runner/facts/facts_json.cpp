#include "base/record_json.hpp"
#include "runner/facts/facts.hpp"

namespace mlenv {
namespace {

constexpr RecordKind kFactsKind = {"mlenv.facts/1", "facts of a host",
                                   "`mlenv facts --json >FILE` writes them on their host"};

}  // namespace

std::string render_facts(const Facts& facts) { return render_record(facts, kFactsKind); }

Facts read_facts(std::string_view text, std::string_view shown) {
  return read_record<Facts>(text, shown, kFactsKind);
}

}  // namespace mlenv
