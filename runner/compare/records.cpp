#include "runner/compare/records.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"

namespace mlenv::compare {
namespace {

using nlohmann::json;

bool is_ours(const RunRecord& record, const std::string& value) {
  const auto& labels = record.start.options.labels;
  return std::any_of(labels.begin(), labels.end(), [&](const auto& one) {
    return one.name == kLabel && (value.empty() || one.value == value);
  });
}

/// Newest first, none that cannot be read.
std::vector<std::string> ours(const RunRecords& records, const std::string& value) {
  std::vector<std::string> ids = records.ids();
  std::reverse(ids.begin(), ids.end());
  std::erase_if(ids, [&](const std::string& id) {
    try {
      return !is_ours(records.read_brief(id), value);
    } catch (const Error&) {
      return true;  // another mlenv's to mend
    }
  });
  return ids;
}

}  // namespace

std::optional<MachineFacts> machine_of(std::string_view run_json) {
  const json run = json::parse(run_json, nullptr, false);
  if (!run.is_object() || !run.contains("vm") || !run.at("vm").is_object()) return std::nullopt;
  const json& vm = run.at("vm");
  MachineFacts facts;
  const std::string accelerator = text_of(vm, "accelerator");
  facts.emulated = accelerator != "kvm";
  facts.about = text_of(vm, "machine") + ", " + accelerator + ", kernel " + text_of(vm, "kernel");
  if (const std::string why = text_of(vm, "why"); facts.emulated && !why.empty()) {
    facts.about += "; no KVM: " + why;
  }
  return facts;
}

std::optional<MachineFacts> newest_machine(const RunRecords& records, const std::string& label) {
  for (const std::string& id : ours(records, label)) {
    for (const char* const name : {"run.json", "end.json"}) {
      const std::optional<std::string> text = read_file_if_exists(records.folder_of(id) / name);
      if (!text) continue;
      if (auto facts = machine_of(*text)) return facts;
    }
  }
  return std::nullopt;
}

void remove_records(const RunRecords& records) {
  for (const std::string& id : ours(records, "")) (void)records.remove(id);
}

}  // namespace mlenv::compare
