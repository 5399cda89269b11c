#include "runner/compare/records.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "base/error.hpp"

namespace mlenv::compare {
namespace {

bool has_our_label(const RunRecord& record, const std::string& value) {
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
      return !has_our_label(records.read_brief(id), value);
    } catch (const Error&) {
      return true;  // another mlenv's to mend
    }
  });
  return ids;
}

}  // namespace

Machine machine_of(const VmUse& vm) {
  Machine machine;
  machine.side = "vm";
  machine.accelerator =
      vm.accelerator == "kvm" || vm.accelerator == "tcg" ? vm.accelerator : "unknown";
  machine.about = fmt::format("{}, {}, kernel {}", vm.machine, vm.accelerator, vm.kernel);
  if (vm.memory_bytes > 0) machine.memory_bytes = vm.memory_bytes;
  if (machine.accelerator != "kvm" && !vm.why.empty()) *machine.about += "; no KVM: " + vm.why;
  return machine;
}

std::optional<RunRecord> newest_record(const RunRecords& records, const std::string& label) {
  for (const std::string& id : ours(records, label.substr(kLabel.size() + 1))) {
    try {
      return records.read_brief(id);
    } catch (const Error&) {
      continue;
    }
  }
  return std::nullopt;
}

Machine newest_machine(const RunRecords& records, const std::string& label) {
  for (const std::string& id : ours(records, label)) {
    try {
      if (const std::optional<VmUse> vm = records.read_brief(id).vm) return machine_of(*vm);
    } catch (const Error&) {
      continue;  // one that cannot be read says nothing
    }
  }
  Machine machine;
  machine.side = "vm";
  machine.accelerator = "unknown";
  return machine;
}

void remove_records(const RunRecords& records) {
  for (const std::string& id : ours(records, "")) (void)records.remove(id);
}

}  // namespace mlenv::compare
