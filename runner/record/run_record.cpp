#include "runner/record/run_record.hpp"

#include "base/record_json.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kHint = "`mlenv runs show --json RUN >FILE` writes one";
constexpr RecordKind kRunKind = {"mlenv.run/1", "record of a run", kHint};
constexpr RecordKind kRunStartKind = {"mlenv.run-start/1", "start of a run", kHint};
constexpr RecordKind kRunEnd = {"mlenv.run-end/1", "end of a run", kHint};
constexpr RecordKind kRanks = {"mlenv.run-ranks/1", "the ranks of a run", kHint};
constexpr RecordKind kVm = {"mlenv.run-vm/1", "the virtual machine of a run", kHint};
constexpr RecordKind kAttempts = {"mlenv.run-attempts/1", "attempts of a run", kHint};
constexpr RecordKind kRunCode = {"mlenv.run-code/1", "state of a run's code", kHint};

}  // namespace

std::string render_run(const RunRecord& record) { return render_record(record, kRunKind); }
RunRecord parse_run(std::string_view text, std::string_view shown) {
  return read_record<RunRecord>(text, shown, kRunKind);
}

std::string render_run_start(const RunStart& start) { return render_record(start, kRunStartKind); }
RunStart parse_run_start(std::string_view text, std::string_view shown) {
  return read_record<RunStart>(text, shown, kRunStartKind);
}

std::string render_run_end(const RunEnd& end) { return render_record(end, kRunEnd); }
RunEnd parse_run_end(std::string_view text, std::string_view shown) {
  return read_record<RunEnd>(text, shown, kRunEnd);
}

std::string render_ranks(const RecordedRanks& ranks) { return render_record(ranks, kRanks); }
RecordedRanks parse_ranks(std::string_view text, std::string_view shown) {
  return read_record<RecordedRanks>(text, shown, kRanks);
}

std::string render_vm_use(const VmUse& vm) { return render_record(vm, kVm); }
VmUse parse_vm_use(std::string_view text, std::string_view shown) {
  return read_record<VmUse>(text, shown, kVm);
}

std::string render_attempts(const RecordedAttempts& attempts) {
  return render_record(attempts, kAttempts);
}
RecordedAttempts parse_attempts(std::string_view text, std::string_view shown) {
  return read_record<RecordedAttempts>(text, shown, kAttempts);
}

std::string render_code_state(const CodeState& code) { return render_record(code, kRunCode); }
CodeState parse_code_state(std::string_view text, std::string_view shown) {
  return read_record<CodeState>(text, shown, kRunCode);
}

}  // namespace mlenv
