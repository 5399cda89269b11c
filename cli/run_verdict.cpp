#include "cli/run_verdict.hpp"

#include <algorithm>
#include <optional>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/process.hpp"
#include "cli/check_subjects.hpp"
#include "cli/host_memory.hpp"
#include "cli/run_devices.hpp"
#include "cli/settings.hpp"
#include "images/inspect/inspect.hpp"
#include "recipes/image_facts.hpp"
#include "runner/cdi/host_state.hpp"
#include "runner/facts/probe.hpp"
#include "runner/own_folder.hpp"

namespace mlenv::cli {
namespace {

Digest built_key(const Image& image) {
  return Digest::of("mlenv.built-facts/1\n" + image.digest().str());
}

/// What is known of it without reading its files.
std::optional<ImageFacts> facts_at_hand(const Store& store, const Image& image) {
  if (auto facts = remembered_image_facts(store, image)) return facts;
  const auto text = store.find_key(built_key(image));
  if (!text) return std::nullopt;
  try {
    return read_image_facts(*text, "facts of the lock");
  } catch (const Error&) {  // another version's
    return std::nullopt;
  }
}

/// A note that this run was judged and may start, on this host as it is.
class Passed {
 public:
  Passed(const Image& image, const JudgedRun& run) : folder_(cache_of("verdicts")) {
    std::string text = "mlenv.run-verdict/2\n" + file_stamp(own_executable());
    text += run.with_gpus ? nvidia_state() : boot_state();
    text += fmt::format("{}\n{} {}\n", image.digest().str(), static_cast<int>(run.gpus.kind),
                        run.gpus.count);
    for (const CdiName& gpu : run.gpus.devices) text += gpu.device + '\n';
    name_ = Digest::of(text).hex();
  }
  bool is_noted() const { return noted().has_value(); }
  /// The folder of libraries that it starts with.
  std::optional<std::string> noted() const { return folder_ ? folder_->read(name_) : std::nullopt; }
  void note(const std::string& libraries) const {
    if (!folder_) return;
    constexpr std::chrono::hours kAge{24 * 30};  // those of earlier boots are met never again
    folder_->forget_older_than(kAge);
    folder_->write(name_, libraries);
  }

 private:
  std::optional<OwnFolder> folder_;
  std::string name_;
};

/// GPUs that the run does not get are not asked for anything. Where one of the names cannot be told
/// from the facts, all stay.
void keep_chosen(const GpuChoice& choice, Facts& host) {
  if (choice.kind != GpuChoice::Kind::named || !host.gpus) return;
  const auto is_named = [](const Gpu& gpu, const CdiName& name) {
    return name.device == std::to_string(gpu.index) || name.device == gpu.uuid.value;
  };
  std::vector<Gpu>& all = *host.gpus.value;
  const auto is_told = [&](const CdiName& name) {
    return name.kind == kNvidiaGpu &&
           std::any_of(all.begin(), all.end(), [&](const Gpu& gpu) { return is_named(gpu, name); });
  };
  if (!std::all_of(choice.devices.begin(), choice.devices.end(), is_told)) return;
  std::erase_if(all, [&](const Gpu& gpu) {
    return std::none_of(choice.devices.begin(), choice.devices.end(),
                        [&](const CdiName& name) { return is_named(gpu, name); });
  });
}

Use run_use(const JudgedRun& run) {
  Use use;
  if (!run.with_gpus) use.gpus = 0;
  if (run.with_gpus && run.gpus.kind == GpuChoice::Kind::count) {
    use.gpus = static_cast<unsigned>(run.gpus.count);
  }
  return use;
}

Verdict verdict_of(const ImageFacts& image, Facts host, const JudgedRun& run) {
  if (run.with_gpus) keep_chosen(run.gpus, host);
  return judge(image, host, run_use(run));
}

std::string libraries_for(const ImageFacts& image, Facts host, const JudgedRun& run) {
  if (!run.with_gpus) return {};
  keep_chosen(run.gpus, host);
  return forward_libraries(image, host, run_use(run));
}

std::string_view rule_title(const Finding& finding) {
  const Rule* rule = find_rule(finding.rule);
  return rule == nullptr ? std::string_view(finding.rule) : rule->title;
}

/// Throws where a finding blocks.
void require_start(const ImageFacts& image, const Facts& host, const JudgedRun& run) {
  const Verdict verdict = verdict_of(image, host, run);
  if (!verdict.blocks()) return;
  const Finding& first = verdict.findings.front();
  Error error = refusal("does-not-run", "`{}` does not run here: {}", run.name, rule_title(first));
  error.because("needed: " + printable(first.needed));
  error.because("found: " + printable(first.found));
  for (std::size_t i = 1; i < verdict.findings.size(); ++i) {
    const Finding& other = verdict.findings[i];
    if (other.severity != Severity::blocks || other.rule == first.rule) continue;
    error.because(fmt::format("besides, {} (`{}`)", rule_title(other), other.rule));
  }
  const bool runs_without =
      run.with_gpus &&
      !verdict_of(image, host, {run.name, {GpuChoice::Kind::none}, false}).blocks();
  const std::string without = runs_without ? "; `--gpus none` runs it on the processor" : "";
  throw std::move(error).hint(
      fmt::format("{}{}; `mlenv explain {}` says more, `--no-check` starts it all the same",
                  printable(first.remedy), without, first.rule));
}

/// A person who expects GPUs is told once a boot why there are none.
void say_unused(Ui& ui, const Image& image, const JudgedRun& run) {
  if (run.gpus.kind != GpuChoice::Kind::automatic || run.with_gpus) return;
  if (wants_gpus(image.settings) != true) return;
  Facts facts;
  probe_nvidia(host_sources(fs::absolute(store_folder()), fs::absolute(temporary_root())), facts);
  const Texts& devices = facts.nvidia.pci_devices;
  if (!devices || devices->empty()) return;
  ui.say(
      fmt::format("note: this runs without GPUs, since no driver of NVIDIA's is loaded for the "
                  "one at {}; `mlenv check {}` says more",
                  printable(devices->front()), run.name));
}

/// Once, of an image whose imports were tried.
void say_failed_imports(Ui& ui, const ImageFacts& facts, const JudgedRun& run) {
  if (!facts.failed_imports || facts.failed_imports->empty()) return;
  const FailedImport& first = facts.failed_imports->front();
  ui.say(fmt::format(
      "note: `import {}` failed when it was tried: {}; `mlenv check {}` says what to do",
      first.import, printable(first.error), run.name));
}

/// Facts that stand in for this host's.
std::optional<Facts> other_host() {
  const auto path = variable("MLENV_HOST_FACTS");
  if (!path) return std::nullopt;
  return host_of_file(*path).facts;
}

/// On another host the words alone say whether GPUs are used.
JudgedRun run_on(const Facts& host, const Image& image, JudgedRun run) {
  const bool has_gpus = host.gpus && !host.gpus->empty();
  run.with_gpus = run.gpus.kind == GpuChoice::Kind::automatic
                      ? has_gpus && wants_gpus(image.settings).value_or(true)
                      : run.gpus.kind != GpuChoice::Kind::none;
  return run;
}

}  // namespace

std::string require_verdict(Ui& ui, const Image& image, const JudgedRun& run) {
  if (const auto host = other_host()) {
    const JudgedRun there = run_on(*host, image, run);
    const ImageFacts facts = facts_to_judge(ui, image, there.with_gpus);
    require_start(facts, *host, there);
    return libraries_for(facts, *host, there);
  }
  const Passed passed{image, run};
  if (auto libraries = passed.noted()) return *std::move(libraries);
  const ImageFacts facts = facts_to_judge(ui, image, run.with_gpus);
  const KnownHost asked{run.with_gpus};
  std::optional<Facts> host = asked.remembered();
  const bool passes = host && !verdict_of(facts, *host, run).blocks();
  // A "no" is never from memory: what it complained of may have been mended.
  if (!passes) {
    host = asked.fresh();
    require_start(facts, *host, run);
  }
  say_unused(ui, image, run);
  say_failed_imports(ui, facts, run);
  std::string libraries = libraries_for(facts, *host, run);
  passed.note(libraries);
  return libraries;
}

ImageFacts facts_to_judge(Ui& ui, const Image& image, bool with_gpus) {
  if (!with_gpus) {
    if (auto facts = facts_at_hand(ui.store(), image)) return std::move(*facts);
  }
  return image_facts(ui.store(), image, ui.progress());
}

bool is_built_here(const Store& store, const Image& image) {
  return store.find_key(built_key(image)).has_value();
}

void remember_built_facts(Store& store, const Image& image, const Lock& lock) {
  if (store.find_key(built_key(image))) return;
  store.put_key(built_key(image), render_image_facts(image_facts_of(lock)));
}

void say_verdict(Ui& ui, const Image& image, const std::string& recipe) {
  JudgedRun run{recipe, {}, has_nvidia_driver() && wants_gpus(image.settings) == true};
  std::optional<Facts> host = other_host();
  if (host) {
    run = run_on(*host, image, run);
  } else if (Passed(image, run).is_noted()) {
    return;
  }
  const auto facts = facts_at_hand(ui.store(), image);
  if (!facts) return;
  if (!host) host = KnownHost(run.with_gpus).remembered();
  if (!host) host = KnownHost(run.with_gpus).fresh();
  const Verdict verdict = verdict_of(*facts, *host, run);
  const auto worst = verdict.worst();
  if (!worst || *worst > Severity::risks) return;
  ui.say(fmt::format("note: this image {}: {}; `mlenv check {}` says what to do",
                     *worst == Severity::blocks ? "does not run here" : "may fail here",
                     rule_title(verdict.findings.front()), recipe));
}

}  // namespace mlenv::cli
