#include "cli/diff_moments.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/text.hpp"
#include "cli/diff_nodes.hpp"
#include "cli/is_file.hpp"
#include "cli/recipes_use.hpp"
#include "cli/run_environment.hpp"
#include "cli/running.hpp"
#include "cli/settings.hpp"
#include "runner/facts/probe.hpp"
#include "runner/record/code_state.hpp"

namespace mlenv::cli {
namespace {

constexpr std::string_view kThisHost = "host";
constexpr std::string_view kJsonEnd = ".json";

NamedMoment of_run(const std::string& name, RunRecord run) {
  NamedMoment out;
  out.name = name;
  out.moment.host = run.facts;
  out.moment.run = std::move(run);
  return out;
}

NamedMoment of_file(const std::string& path) {
  if (!is_file(path)) {
    throw failure("absent", "there is no file `{}`", path)
        .hint("`mlenv runs show --json RUN >FILE` or `mlenv facts --json >FILE` writes one");
  }
  const std::string text = read_small_file(path, size_limit::kFacts);
  const nlohmann::json root = parse_json(text, path);
  if (root.is_object() && text_of(root, "schema").starts_with("mlenv.run/")) {
    return of_run(path, parse_run(text, path));
  }
  NamedMoment out;
  out.name = path;
  out.moment.host = read_facts(text, path);
  return out;
}

NamedMoment of_recorded(const std::string& name) {
  const RunRecords all = run_records();
  return of_run(name, all.read(all.find(name)));
}

/// Hex digits and dashes, with a digit: of no image's name that anybody would choose.
bool looks_like_id(std::string_view word) {
  constexpr std::size_t kFewest = 4;
  constexpr std::string_view kOfIds = "0123456789abcdef-";
  return word.size() >= kFewest && word.find_first_not_of(kOfIds) == std::string_view::npos &&
         std::any_of(word.begin(), word.end(), is_digit);
}

bool is_environment(Ui& ui, const std::string& argument) {
  if (is_recipe_path(argument) || argument.ends_with(".lock") || is_file(argument)) return true;
  constexpr std::string_view kDigest = "sha256:";
  if (argument.starts_with(kDigest)) return true;
  return ui.store().find_image(argument).has_value();
}

/// Asked of the repositories of runs that were made here; what a file names is somebody else's.
Texts code_files(const NamedMoment& from, const NamedMoment& to) {
  Texts files = unknown<std::vector<std::string>>("no repository here");
  if (!from.moment.run || !to.moment.run) return files;
  const std::optional<CodeState>& before = from.moment.run->code;
  const std::optional<CodeState>& after = to.moment.run->code;
  const bool told = before && after && before->commit && after->commit;
  if (!told || *before->commit == *after->commit) return files;
  for (const NamedMoment* one : {&to, &from}) {
    const std::optional<std::string>& project = one->moment.run->start.project;
    if (one->name.ends_with(kJsonEnd) || !project || files) continue;
    files = files_between(*project, *before->commit, *after->commit);
  }
  return files;
}

}  // namespace

std::string_view NamedMoment::kind() const {
  if (moment.run) return "run";
  return name == kThisHost ? "host" : "facts";
}

std::optional<NamedMoment> moment_named(Ui& ui, const std::string& argument) {
  if (argument == kThisHost) {
    NamedMoment out;
    out.name = argument;
    out.moment.host =
        probe_facts(host_sources(fs::absolute(store_folder()), fs::absolute(temporary_root())));
    return out;
  }
  if (argument == "last" ||
      (argument.starts_with("last~") && argument.find(':') == std::string::npos)) {
    return of_recorded(argument);
  }
  if (argument.ends_with(kJsonEnd)) return of_file(argument);
  if (is_environment(ui, argument)) return std::nullopt;
  if (std::optional<NamedMoment> node = node_named(argument)) return node;
  try {
    return of_recorded(argument);
  } catch (const Error& error) {
    // Another word is more likely an image's name.
    if (error.code() == "no-run" && !looks_like_id(argument)) return std::nullopt;
    throw;
  }
}

changes::Changes compare(Ui& ui, NamedMoment& from, NamedMoment& to) {
  if (from.moment.run && to.moment.run &&
      from.moment.run->start.image.digest != to.moment.run->start.image.digest) {
    for (NamedMoment* one : {&from, &to}) {
      one->moment.no_environment = add_environment(ui, *one->moment.run);
    }
  }
  return changes::changes_between(from.moment, to.moment, code_files(from, to));
}

Side side_of(Ui& ui, const NamedMoment& one, std::string_view other) {
  if (!one.moment.run) {
    throw usage_error("diff-pair", "`{}` is a host, and `{}` is none", one.name, other)
        .because(
            "a host goes with a run, with `host` (this one) or with another one's facts; an "
            "image, lock or recipe with its like, or with a run")
        .hint("whether an image runs on a host: `mlenv check IMAGE --host FACTS.json`");
  }
  const RunRecord& run = *one.moment.run;
  const std::string& digest = run.start.image.digest;
  if (ui.store().find_image(digest)) {
    return {one.name, std::nullopt, image_named(ui, digest), {}, {}};
  }
  if (!run.environment) {
    throw failure("not-found", "the image of run `{}` is not in the store", run.start.id)
        .because(fmt::format("it was {} `{}`", digest, run.start.image.name))
        .hint(
            "`mlenv pull` it where it was pushed; or have the run handed over with `mlenv runs "
            "show "
            "--json RUN` where the image is");
  }
  const Digest known = Digest::parse(digest);
  return {one.name,
          std::nullopt,
          std::nullopt,
          {},
          RecordedSide{known, environment_of(*run.environment)}};
}

}  // namespace mlenv::cli
