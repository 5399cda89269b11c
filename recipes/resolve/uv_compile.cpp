// One question to `uv pip compile`.
#include <algorithm>
#include <array>

#include "base/log.hpp"
#include "base/process.hpp"
#include "base/scratch_folder.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/logins.hpp"
#include "recipes/requirement_files.hpp"
#include "recipes/resolve/direct_search.hpp"
#include "recipes/resolve/host_logins.hpp"
#include "recipes/resolve/machine_steering.hpp"
#include "recipes/resolve/uv.hpp"
#include "recipes/resolve/uv_steering.hpp"
#include "recipes/text.hpp"
#include "recipes/toml.hpp"

namespace mlenv {
namespace {

constexpr std::chrono::minutes kDeadline{15};
constexpr std::size_t kLongestCause = 1000;

/// They would answer another question than the one asked. Of uv's own variables the machine's
/// alone stay (`may_reach_uv`).
constexpr std::array<std::string_view, 2> kUnwantedVariables = {"VIRTUAL_ENV", "CONDA_PREFIX"};

struct UvProgram {
  const fs::path& path;
  const fs::path& cache;
};

/// What is to be told.
enum class Answer { wheels, extras, askers };

/// uv puts this machine's variables into such a file, and what it names is asked with them: readers
/// refuse them, each at its place.
void refuse_variables(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    if (line.find("${") == std::string::npos) continue;
    throw usage_error("requirements-invalid", "`{}` names a variable of this machine",
                      without_logins(line))
        .hint("write what it stands for: a lock is the same on every machine");
  }
}

std::string as_lines(const std::vector<std::string>& all) { return join(all, "\n") + '\n'; }

void add_index_options(std::vector<std::string>& argv, const std::vector<std::string>& indexes) {
  for (std::size_t i = 0; i < indexes.size(); ++i) {
    argv.emplace_back(i == 0 ? "--default-index" : "--index");
    argv.push_back(indexes[i]);
  }
}

std::vector<std::string> arguments(const UvQuestion& question, const WheelRequest& request,
                                   const UvProgram& program, Answer answer) {
  const fs::path interpreter =
      described_interpreter(program.cache, request.python, request.glibc, request.architecture);
  const std::string format = answer == Answer::wheels ? "pylock.toml" : "requirements.txt";
  std::vector<std::string> argv = {program.path.string(),
                                   "pip",
                                   "compile",
                                   "requirements.in",
                                   "--constraint",
                                   "constraints.txt",
                                   "--format",
                                   format,
                                   "--output-file",
                                   format,
                                   "--python",
                                   interpreter.string(),
                                   "--no-header",
                                   "--no-progress",
                                   "--color",
                                   "never"};
  // Its warnings tell what was yanked.
  if (answer != Answer::wheels) argv.emplace_back("--quiet");
  if (answer == Answer::extras) {
    argv.emplace_back("--no-strip-extras");
    argv.emplace_back("--no-annotate");
  }
  if (question.no_sources) argv.emplace_back("--no-build");
  if (question.no_dependencies) argv.emplace_back("--no-deps");
  for (const std::string& name : question.only_wheels) {
    if (question.no_sources) break;  // uv takes one or the other
    argv.emplace_back("--only-binary");
    argv.push_back(name);
  }
  if (request.recipe != nullptr) add_index_options(argv, request.recipe->sources.pypi);
  return argv;
}

void require_folders(const Recipe& recipe) {
  for (const std::string& line : recipe.listed.indexes) {
    const fs::path path = index_path(line);
    std::error_code unknown;
    if (path.empty() || fs::exists(path, unknown)) continue;
    const auto place = find_index(recipe, line);
    const std::string why =
        fmt::format("`{}`, where packages are looked for, does not exist",
                    place && !place->text.empty() ? place->text : path.string());
    throw usage_error("requirements-invalid", "{}", place ? place->shown(why) : why);
  }
}

std::string settings(const std::vector<ReleaseMetadata>& known) {
  std::string text;
  for (const ReleaseMetadata& one : known) {
    text += fmt::format("[[dependency-metadata]]\nname = {}\nrequires-dist = {}\n",
                        toml_text(one.name), toml_list(one.requires_dist));
    if (!one.version.empty()) text += fmt::format("version = {}\n", toml_text(one.version));
    if (!one.requires_python.empty()) {
      text += fmt::format("requires-python = {}\n", toml_text(one.requires_python));
    }
    if (!one.extras.empty()) text += fmt::format("provides-extra = {}\n", toml_list(one.extras));
  }
  return text;
}

/// uv brings a list of certificate authorities of its own; what counts is what this machine trusts,
/// as it does for apt, for pip and for our downloads.
void trust_as_we_do(std::vector<std::string>& environment) {
  const std::string bundle{variable_in(environment, "CURL_CA_BUNDLE")};
  if (!bundle.empty() && variable_in(environment, "SSL_CERT_FILE").empty()) {
    environment.push_back("SSL_CERT_FILE=" + bundle);
  }
  if (variable_in(environment, "UV_SYSTEM_CERTS").empty() &&
      variable_in(environment, "UV_NATIVE_TLS").empty()) {
    environment.emplace_back("UV_SYSTEM_CERTS=true");
    environment.emplace_back("UV_NATIVE_TLS=true");  // as older versions call it
  }
}

/// Says what may help when it hangs.
template <typename Work>
Captured while_uv_works(Work&& work) {
  try {
    return work();
  } catch (Error& error) {
    if (error.code() == "timeout") {
      error.because("uv was asked which releases the recipe needs");
      error.hint(
          "an index may not answer, or hold very many releases: pin versions in the recipe, or "
          "see what uv does with `--verbose`");
    }
    throw;
  }
}

/// In a folder of its own, where the answer is found.
Captured run_uv(const UvQuestion& question, const WheelRequest& request, const UvProgram& program,
                Answer answer, const fs::path& folder) {
  // Settings files above the folder are not the machine's: an own one ends uv's search.
  write_file(folder / "uv.toml", settings(question.known), false);
  std::vector<std::string> wanted;
  if (request.recipe != nullptr) {
    require_folders(*request.recipe);
    wanted = request.recipe->listed.indexes;
  }
  const UvSteering steering(question, request.recipe, folder);
  wanted.insert(wanted.end(), steering.requirements().begin(), steering.requirements().end());
  refuse_variables(wanted);
  refuse_variables(question.constraints);
  write_file(folder / "requirements.in", as_lines(wanted), false);
  write_file(folder / "constraints.txt", as_lines(question.constraints), false);
  if (answer == Answer::wheels && !question.preferences.empty()) {
    std::vector<std::pair<std::string, std::string>> versions;
    for (const LockedWheel& wheel : question.preferences) {
      versions.emplace_back(wheel.name, wheel.version);
    }
    write_file(folder / "pylock.toml", render_preferences(versions), false);
  }
  Command command{Purpose{"uv-resolve"}};
  command.argv = arguments(question, request, program, answer);
  command.argv.insert(command.argv.end(), steering.words().begin(), steering.words().end());
  std::vector<std::string> environment = uv_environment();
  std::vector<std::string> words = command.argv;
  words.insert(words.end(), wanted.begin(), wanted.end());
  words.insert(words.end(), question.constraints.begin(), question.constraints.end());
  words.insert(words.end(), steering.addresses().begin(), steering.addresses().end());
  narrow_netrc(environment, words, folder);
  narrow_uv_config(environment, folder);
  command.env = std::move(environment);
  command.folder = folder;
  Captured said = while_uv_works([&] { return run_captured(std::move(command), kDeadline); });
  log::debug("uv: exit {}, {}", said.exit.code, without_logins(trim(said.err)));
  return said;
}

}  // namespace

std::vector<std::string> uv_environment() { return uv_environment(own_environment()); }

std::vector<std::string> uv_environment(const std::vector<std::string>& own) {
  std::vector<std::string> kept;
  for (const std::string& text : own) {
    const std::string_view name = std::string_view(text).substr(0, text.find('='));
    if (may_reach_uv(name) && !is_among(kUnwantedVariables, name)) kept.push_back(text);
  }
  kept.emplace_back("UV_PYTHON_DOWNLOADS=never");
  trust_as_we_do(kept);
  return kept;
}

UvAnswer ask_uv(const UvQuestion& question, const WheelRequest& request, const fs::path& uv,
                const fs::path& cache) {
  const ScratchFolder folder;
  const Captured said = run_uv(question, request, {uv, cache}, Answer::wheels, folder.path());
  if (said.exit.code == 0) {
    PylockPackages packages = parse_pylock(
        read_small_file(folder.path() / "pylock.toml", size_limit::kLock), folder.path());
    mark_yanked(said.err, packages);
    return packages;
  }
  const bool own_indexes = request.recipe != nullptr && !request.recipe->sources.pypi.empty();
  return std::visit([](auto&& one) -> UvAnswer { return std::forward<decltype(one)>(one); },
                    explain_uv_failure(without_uv_warnings(said.err), own_indexes));
}

PackageAskers ask_askers(const UvQuestion& question, const WheelRequest& request,
                         const fs::path& uv, const fs::path& cache) {
  const ScratchFolder folder;
  const Captured said = run_uv(question, request, {uv, cache}, Answer::askers, folder.path());
  if (said.exit.code != 0) return {};
  PackageAskers all;
  std::set<std::string>* askers = nullptr;
  const std::string text = read_small_file(folder.path() / "requirements.txt", size_limit::kLock);
  for (std::string_view line : split(text, '\n')) {
    const bool package = !line.empty() && is_alphanumeric(line.front());
    line = trim(line);
    if (package) askers = &all[package_of_requirement(std::string(line.substr(0, line.find(' '))))];
    if (askers == nullptr || !line.starts_with('#')) continue;
    line = trim(line.substr(1));
    if (line.starts_with("via")) line = trim(line.substr(3));
    const std::string name(line);
    if (is_wheel_name(name)) askers->insert(name);  // else a file of the question
  }
  return all;
}

AskedExtras ask_extras(const UvQuestion& question, const WheelRequest& request, const fs::path& uv,
                       const fs::path& cache) {
  const ScratchFolder folder;
  const Captured said = run_uv(question, request, {uv, cache}, Answer::extras, folder.path());
  if (said.exit.code != 0) {
    throw failure("uv-failed", "uv does not tell which extras the packages ask for")
        .because(without_logins(trim(said.err)).substr(0, kLongestCause));
  }
  AskedExtras all;
  const std::string text = read_small_file(folder.path() / "requirements.txt", size_limit::kLock);
  for (const std::string_view line : split(text, '\n')) {
    const auto one = read_dependency(std::string(trim(line)));
    if (one && !one->extras.empty()) {
      all[one->normalised_name()].insert(one->extras.begin(), one->extras.end());
    }
  }
  return all;
}

}  // namespace mlenv
