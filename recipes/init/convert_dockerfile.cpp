#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "base/error.hpp"
#include "recipes/init/build_commands.hpp"
#include "recipes/init/converters.hpp"
#include "recipes/init/copied_files.hpp"
#include "recipes/init/docker_context.hpp"
#include "recipes/init/docker_run.hpp"
#include "recipes/init/docker_stages.hpp"
#include "recipes/init/docker_variables.hpp"
#include "recipes/init/docker_words.hpp"
#include "recipes/init/dockerfile.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/init/project_images.hpp"
#include "recipes/init/shell_words.hpp"
#include "recipes/logins.hpp"
#include "recipes/recipe.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kNoUv = "not needed: mlenv does without it";
constexpr std::string_view kUser = "user";

class DockerConversion {
 public:
  DockerConversion(const ConversionSource& source, const DockerBuild& build, Conversion& to)
      : source_(source),
        to_(to),
        args_(build.args),
        build_(build),
        target_(to_lower(build.target)),
        context_(build.context.empty()
                     ? guessed_docker_context(source.text, source.path.parent_path(), to.folder())
                     : build.context),
        files_(context_, to) {}

  void convert() {
    read();
    if (!stages_.all.empty()) finish();
  }

 private:
  void read() {
    std::vector<DockerInstruction> all = read_dockerfile(source_.text, source_.path);
    to_.check_count(all.size(), "instructions");
    for (DockerInstruction& one : all) {
      if (one.keyword == "FROM") {
        from(std::move(one));
      } else if (stages_.all.empty()) {
        argument(one, globals_);
      } else {
        stages_.all.back().instructions.push_back(std::move(one));
      }
    }
    to_.set_later_wins();
    if (stages_.all.empty()) return leave_out({"", {}, source_.shown, {}, 0}, "it has no `FROM`");
    const std::vector<std::size_t> chain = stages_.chain_of(wanted_stage());
    memory_.builds_wheel = builds_wheel();
    memory_.text = source_.text;
    taken_.insert(chain.begin(), chain.end());
    judged_.insert(chain.front());
    DockerStages::Used used = stages_.used_by(chain);
    installing_ = std::move(used.installing);
    for (std::size_t i = 0; i < stages_.all.size(); ++i) {
      if (taken_.contains(i) || used.all.contains(i)) continue;
      leave_out(stages_.all[i].from, "a stage of its own: what it makes is not in the recipe");
    }
    for (const std::size_t i : chain) stage(stages_.all[i], i == chain.front());
    files_.tell_unplaced();
  }

  std::size_t wanted_stage() const {
    for (std::size_t i = 0; i < stages_.all.size() && !target_.empty(); ++i) {
      if (stages_.all[i].name == target_ || std::to_string(i) == target_) return i;
    }
    return stages_.all.size() - 1;
  }

  /// Whether a stage makes a wheel of the project.
  bool builds_wheel() const {
    constexpr std::array<std::string_view, 4> kWheelBuilds = {"setup.py bdist_wheel", "-m build",
                                                              "uv build", "poetry build"};
    return std::any_of(stages_.all.begin(), stages_.all.end(), [&](const DockerStage& stage) {
      const auto& all = stage.instructions;
      return std::any_of(all.begin(), all.end(), [&](const DockerInstruction& one) {
        return one.keyword == "RUN" &&
               std::any_of(kWheelBuilds.begin(), kWheelBuilds.end(),
                           [&](std::string_view what) { return says(one.text, what); });
      });
    });
  }

  SourcePlace place(const DockerInstruction& one) const { return {source_.shown, one.line}; }
  void leave_out(const DockerInstruction& one, std::string_view why) {
    std::string text = one.keyword;
    for (const std::string& flag : one.flags) text += ' ' + flag;
    to_.leave_out(place(one), text + ' ' + one.text, why);
  }

  /// Values of ENV count before those of ARG.
  DockerVariables known() const {
    DockerVariables all = variables_;
    all.insert(arguments_.begin(), arguments_.end());
    return all;
  }

  void from(DockerInstruction one) {
    bool complete = true;
    const std::vector<std::string> words = docker_words(one.text, globals_, complete);
    DockerStage stage;
    if (!words.empty() && complete) stage.image = words.front();
    if (words.size() >= 3 && to_lower(words[1]) == "as") stage.name = to_lower(words[2]);
    stage.from = std::move(one);
    stages_.all.push_back(std::move(stage));
  }

  void argument(const DockerInstruction& one, DockerVariables& known_here) {
    if (one.keyword != "ARG") return leave_out(one, "it stands before the first `FROM`");
    bool complete = true;
    for (const std::string& word : docker_words(one.text, known_here, complete)) {
      const std::size_t equal = word.find('=');
      const std::string name = word.substr(0, equal);
      to_.check_count(known_here.size() + 1, "variables", Conversion::kMostVariables);
      if (const auto given = args_.find(name); given != args_.end()) {
        known_here[name] = given->second;
      } else if (equal != std::string::npos) {
        known_here[name] = word.substr(equal + 1);
      } else if (const auto global = globals_.find(name); global != globals_.end()) {
        known_here[name] = global->second;
      } else if (const std::string_view own = platform_argument(name); !own.empty()) {
        known_here[name] = own;
      } else if (names_home(name)) {
        known_here[name] = kUser;
        if (!told_users_.insert(name).second) continue;
        to_.note(place(one), "ARG " + name,
                 "it has no default, and names a folder below /home: `user` stands for it here, "
                 "and the image's user is root all the same");
      } else {
        unset_.insert(name);
        continue;
      }
      unset_.erase(name);
    }
  }

  /// Whether a folder of a user has its name from that argument: `/home/${name}`.
  bool names_home(const std::string& name) const {
    if (says(source_.text, fmt::format("/home/${{{}}}", name))) return true;
    const std::string plain = fmt::format("/home/${}", name);
    for (std::size_t at = source_.text.find(plain); at != std::string::npos;
         at = source_.text.find(plain, at + 1)) {
      const std::size_t end = at + plain.size();
      const bool longer = end < source_.text.size() &&
                          (is_alphanumeric(source_.text[end]) || source_.text[end] == '_');
      if (!longer) return true;
    }
    return false;
  }

  /// Sources and target.
  std::vector<std::string> copied_words(const DockerInstruction& one, bool& complete) const {
    const auto items = exec_form(one.text);
    if (!items) return docker_words(one.text, known(), complete);
    std::vector<std::string> words;
    for (const std::string& item : *items) {
      words.push_back(expand_variables(item, known(), complete));
    }
    return words;
  }

  /// `COPY --from=build /app/.venv /app/.venv`: what that stage installs is in the image, and what
  /// it copied from here.
  void copy_from(const DockerInstruction& one, std::size_t from) {
    if (open_.contains(from)) return leave_out(one, "a stage that copies from itself");
    bool complete = true;
    const std::vector<std::string> words = copied_words(one, complete);
    for (std::size_t i = 0; complete && i + 1 < words.size(); ++i) {
      const bool environment =
          stages_.is_environment(words[i], from) || stages_.holds_environment(words[i], from);
      if (environment && installing_.contains(from)) environment_of_image(one, words[i], from);
    }
    const CopiedFiles& copied = take_stage(from);
    if (!complete || words.size() < 2) return leave_out(one, kUnknownVariable);
    const DockerStage& head = stages_.all[stages_.chain_of(from).front()];
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (is_uv(head.image, words[i])) {
        leave_out(one, kNoUv);
        continue;
      }
      // `/build/dist`, which becomes `/wheels`.
      fs::path target = (fs::path(workdir_) / words.back()).lexically_normal();
      if (!target.has_filename()) target = target.parent_path();
      const bool becomes = installing_.contains(from) && holds_packages(target.string());
      const bool environment = becomes || stages_.is_environment(words[i], from);
      if (environment && !other_ && target != "/") memory_.copied.push_back(target.string());
      const bool found =
          !environment && files_.copy_from(place(one), copied, words[i], words.back(), workdir_);
      if (environment || found || stages_.holds_environment(words[i], from)) continue;
      leave_out(one, "made in another stage of the build: write as a step of `run` what makes it");
    }
  }

  /// `/wheels`, `/opt/venv`, but not what /usr/local has beside Python's packages.
  static bool holds_packages(std::string_view path) {
    const bool python = says(path, "-packages") || says(path, "/python");
    return is_environment_path(path) && (python || !says(path, "/usr/local"));
  }

  static bool is_uv(std::string_view image, std::string_view path) {
    const std::string name = fs::path(path).filename().string();
    return says(image, "/uv") && (name == "uv" || name == "uvx");
  }

  /// Of an environment that is copied out of a stage: what the image has of it that the stage
  /// begins with.
  void environment_of_image(const DockerInstruction& one, const std::string& path,
                            std::size_t from) {
    const std::size_t first = stages_.chain_of(from).front();
    const std::string& image = stages_.all[first].image;
    if (judged_.contains(first) || stages_.is_copied_on(path, from)) return;
    const bool bare = stages_.is_bare(from);
    if (!bare && stages_.makes_environment(path, from)) return;
    // A program that the stage's commands made, which are told.
    if (!bare && says(path, "/bin/")) return;
    const bool packages = to_.draft.base.empty() || is_package_base(to_.draft.base);
    const bool python = says(path + '/', "/usr/local/") && to_.draft.python.empty() && packages;
    const ImageContents contents = contents_of_image(image);
    if (!bare && (contents == ImageContents::none ||
                  (contents == ImageContents::tools && !python && !says(path, "cuda")))) {
      return;
    }
    judged_.insert(first);
    packages_of_image(one, image);
  }

  void packages_of_image(const DockerInstruction& one, const std::string& image) {
    if (image.empty()) {
      return leave_out(one, "a variable in the name of the image that it comes from has no value");
    }
    switch (contents_of_image(image)) {
      case ImageContents::none:
        return leave_out(one, fmt::format("`{}` has no packages of Python's there, and no command "
                                          "here installs some: name them under `packages`",
                                          image));
      case ImageContents::tools:
      case ImageContents::packages:
        return convert_copied_image(place(one), image, to_);
      case ImageContents::unknown:
        return leave_out(one, fmt::format("what `{}` has there is not known here: name its "
                                          "packages under `packages` and `system`, or make it "
                                          "the `base`",
                                          image));
    }
  }

  /// `COPY --from=h.example/x:1 /opt/venv /opt/venv`. False: no environment is copied.
  bool copy_of_image(const DockerInstruction& one) {
    constexpr std::string_view kFrom = "--from=";
    const auto flag = std::find_if(one.flags.begin(), one.flags.end(),
                                   [&](const auto& each) { return each.starts_with(kFrom); });
    if (flag == one.flags.end()) return false;
    bool complete = true;
    const std::string image =
        expand_variables(std::string_view(*flag).substr(kFrom.size()), globals_, complete);
    const std::vector<std::string> words = copied_words(one, complete);
    if (!complete || words.size() < 2) return false;
    const bool environment = std::any_of(words.begin(), words.end() - 1, [](const auto& source) {
      return is_environment_path(source) && !says(source, "/bin/");
    });
    // What a stage copies that is not in the image is of no use.
    if (environment && (!other_ || installs_)) packages_of_image(one, image);
    return environment;
  }

  /// What another stage installs, and what it copies, once.
  const CopiedFiles& take_stage(std::size_t from) {
    const auto known_already = other_stages_.find(from);
    if (known_already != other_stages_.end()) return known_already->second;
    open_.insert(from);
    CopiedFiles mine(context_, to_);
    mine.only_find();
    std::swap(files_, mine);
    const std::string workdir = std::exchange(workdir_, "/");
    const DockerVariables variables = variables_;
    const DockerVariables arguments = std::exchange(arguments_, {});
    const std::set<std::string> unset = std::exchange(unset_, {});
    const bool other = std::exchange(other_, true);
    const bool installs = installs_;
    const DockerVariables dropped = dropped_;
    const std::set<std::string> lost = lost_;
    for (const std::size_t i : stages_.chain_of(from)) {
      for (const DockerInstruction& one : stages_.all[i].instructions) {
        const bool wanted = installing_.contains(i) && !taken_.contains(i);
        installs_ = wanted;
        if (one.keyword == "RUN" && !wanted) continue;
        instruction(one);
      }
      taken_.insert(i);
    }
    other_ = other;
    installs_ = installs;
    dropped_ = dropped;
    lost_ = lost;
    open_.erase(from);
    variables_ = variables;
    arguments_ = arguments;
    unset_ = unset;
    workdir_ = workdir;
    std::swap(files_, mine);
    return other_stages_.emplace(from, std::move(mine)).first->second;
  }

  void stage(const DockerStage& stage, bool first) {
    if (first) arguments_.clear();  // a stage has those of the one that it begins with
    for (const std::string& flag : stage.from.flags) {
      to_.leave_out(place(stage.from), "FROM " + flag,
                    "a lock is for the platform that it is made for");
    }
    if (first && stage.image.empty()) {
      leave_out(stage.from, kUnknownVariable);
    } else if (first && !follow(stage)) {
      convert_base_image(place(stage.from), stage.image, to_);
    }
    for (const DockerInstruction& one : stage.instructions) instruction(one);
  }

  /// An image that another Dockerfile of this project builds: what that says comes first.
  bool follow(const DockerStage& stage) {
    const std::optional<ProjectImage> found =
        project_image(stage.image, source_.path, {source_.path.parent_path(), context_}, to_);
    if (!found) return false;
    std::error_code unknown;
    const fs::path mine = fs::weakly_canonical(source_.path, unknown);
    const fs::path theirs = fs::weakly_canonical(found->dockerfile, unknown);
    if (theirs == mine || followed_.contains(theirs)) return false;
    ConversionSource source;
    try {
      source = read_source(found->dockerfile, to_);
      read_dockerfile(source.text, source.path);
    } catch (const Error&) {
      to_.leave_out(place(stage.from), found->dockerfile.lexically_normal().string(),
                    "it builds the image, and cannot be read: `mlenv init --from` of it says why");
      return false;
    }
    to_.note(place(stage.from), stage.image,
             fmt::format("`{}` builds it, and is read in its place", source.shown));
    DockerConversion base(source, found->build, to_);
    base.followed_ = followed_;
    base.followed_.insert(mine);
    base.read();
    variables_ = std::move(base.variables_);
    dropped_ = std::move(base.dropped_);
    lost_ = std::move(base.lost_);
    workdir_ = base.workdir_;
    command_ = std::move(base.command_);
    entrypoint_ = std::move(base.entrypoint_);
    inherited_ = true;
    bash_ = base.bash_;
    const bool builds_wheel = memory_.builds_wheel || base.memory_.builds_wheel;
    memory_ = std::move(base.memory_);
    memory_.builds_wheel = builds_wheel;
    memory_.text = source_.text;
    files_.inherit(base.files_);
    return true;
  }

  void instruction(const DockerInstruction& one) {
    if (one.keyword == "ARG") return argument(one, arguments_);
    if (one.keyword == "ENV") return env(one);
    if (one.keyword == "WORKDIR") return workdir(one);
    if (one.keyword == "RUN") return run(one);
    if (one.keyword == "COPY" || one.keyword == "ADD") return copy(one);
    if (other_) return;
    if (one.keyword == "SHELL") return shell(one);
    if (one.keyword == "CMD") {
      command_ = one;
      inherited_ = false;
      return;
    }
    if (one.keyword == "ENTRYPOINT") {
      // It takes none of the arguments that another image's CMD gives.
      if (inherited_) command_ = {};
      entrypoint_ = one;
      return;
    }
    const std::string_view why = why_no_key(one.keyword);
    if (one.keyword == "LABEL" || one.keyword == "MAINTAINER") {
      to_.leave_out_with_others(place(one), one.keyword + ' ' + one.text, why);
    } else if (!why.empty()) {
      leave_out(one, why);
    }
  }

  void copy(const DockerInstruction& one) {
    if (const auto stage = stages_.copied_from(one)) return copy_from(one, *stage);
    if (!one.heredocs.empty()) return written_file(one);
    const bool of_uv = std::any_of(one.flags.begin(), one.flags.end(), [](const std::string& flag) {
      return flag.starts_with("--from=") && says(flag, "/uv");
    });
    if (of_uv) return leave_out(one, kNoUv);
    if (copy_of_image(one)) return;
    files_.copy(place(one), one, known(), workdir_);
  }

  /// `COPY <<EOF /etc/x`
  void written_file(const DockerInstruction& one) {
    const DockerHeredoc& heredoc = one.heredocs.front();
    bool complete = true;
    const std::vector<std::string> words = docker_words(one.text, known(), complete);
    const bool quoted = one.text.find_first_of("'\"") != std::string::npos;
    const std::string text =
        quoted ? heredoc.text : expand_variables(heredoc.text, known(), complete);
    if (other_) return;
    if (!complete || words.size() != 2 || one.heredocs.size() > 1 || has_control(text, "\t\n")) {
      return leave_out(one,
                       "a file in the Dockerfile itself: write it here, and name it in `files`");
    }
    fs::path where = (fs::path(workdir_) / words.back()).lexically_normal();
    if (!where.has_filename()) where /= heredoc.name;
    to_.add_step({workdir_,
                  {fmt::format("mkdir -p {}\ncat > {} <<'{}'\n{}{}",
                               shell_quoted(where.parent_path().string()),
                               shell_quoted(where.string()), heredoc.name, text, heredoc.name),
                   false,
                   {}}});
  }

  void shell(const DockerInstruction& one) {
    const auto words = exec_form(one.text);
    const std::string program = words && !words->empty() ? words->front() : "";
    bash_ = program.ends_with("bash");
    if (program.ends_with("conda") || program.ends_with("mamba") || bash_ || program == "/bin/sh" ||
        says(one.text, "_dockerfile_shell")) {
      return;
    }
    leave_out(one, "steps of `run` are executed by `/bin/sh -euc`");
  }

  void env(const DockerInstruction& one) {
    for (const DockerVariable& each : docker_env(one, known())) {
      if (!each.mistake.empty()) {
        leave_out(one, each.mistake);
      } else if (other_) {
        if (each.complete) variables_[each.name] = each.value;
      } else if (convert_variable(place(one), each, to_)) {
        variables_[each.name] = each.value;
        keep_for_steps(each);
      } else if (!each.complete && each.name != "PATH") {
        variables_.erase(each.name);
        dropped_.erase(each.name);
        lost_.insert(each.name);
      }
    }
  }

  /// Steps have the recipe's `env`; what did not go there they are given by name.
  void keep_for_steps(const DockerVariable& variable) {
    const auto& all = to_.draft.env;
    const bool there = std::any_of(all.begin(), all.end(), [&](const auto& one) {
      return one.first == variable.name && one.second == variable.value;
    });
    dropped_.erase(variable.name);
    lost_.erase(variable.name);
    if (there) return;
    if (without_logins(variable.value) == variable.value) {
      dropped_[variable.name] = variable.value;
    } else {
      lost_.insert(variable.name);
    }
  }

  /// Variables that a step does not have by itself: arguments, and what is not in the recipe.
  DockerVariables given_to_steps() const {
    DockerVariables all = dropped_;
    for (const auto& [name, value] : arguments_) {
      const auto set = variables_.find(name);
      if (set == variables_.end() || set->second == value) all.emplace(name, value);
    }
    return all;
  }

  void workdir(const DockerInstruction& one) {
    bool complete = true;
    std::vector<std::string> words = docker_words(one.text, known(), complete);
    std::string path = join(words, " ");
    if (!complete) {
      DockerVariables all = known();
      for (const std::string& name : unset_) all.emplace(name, "");
      complete = true;
      words = docker_words(one.text, all, complete);
      path = (fs::path(workdir_) / join(words, " ")).lexically_normal().string();
      complete = complete && path != "/" && path != workdir_ && path != workdir_ + '/';
      if (complete && !other_) {
        to_.note(place(one), "WORKDIR " + one.text,
                 fmt::format("an argument in it has no default: the folder is `{}`, as Docker "
                             "makes it of none",
                             path));
      }
    }
    fs::path whole = (fs::path(workdir_) / path).lexically_normal();
    if (!whole.has_filename() && whole != "/") whole = whole.parent_path();
    if (!complete || !is_clean_absolute_path(whole.string())) {
      return leave_out(one, complete ? "not a path in the image" : kUnknownVariable);
    }
    workdir_ = whole.string();
    if (!other_) to_.draft.workdir = workdir_;
  }

  void run(const DockerInstruction& one) {
    DockerVariables known_here = known();
    known_here.emplace("HOME", "/root");
    BuildCommands commands{place(one), one.text, known_here, given_to_steps(), workdir_, {}, {},
                           &memory_,   bash_,    unset_};
    commands.lost = lost_;
    commands.paths = [&](std::string_view pattern) { return files_.matching(pattern, workdir_); };
    if (other_) {
      commands.obstacle =
          "a step of another stage of the build: write it as a step of `run` if what it makes is "
          "needed";
    }
    const FindFile find = [&](std::string_view name) { return files_.find(name, workdir_); };
    const std::size_t before = memory_.clones.size();
    convert_run(one, std::move(commands), find, to_);
    for (std::size_t i = before; i < memory_.clones.size(); ++i) {
      const Clone& clone = memory_.clones[i];
      if (is_by_ssh(clone) && is_clone_of_folder(clone, to_.folder())) {
        files_.add(clone.path, to_.folder().empty() ? "." : to_.folder());
      }
    }
  }

  /// The words that an instruction starts; those of a shell's where they are no plain words.
  std::vector<std::string> words_of(const DockerInstruction& one) {
    if (const auto words = exec_form(one.text)) return *words;
    std::vector<ShellCommand> all = shell_commands(one.text, known());
    // The environment is the image's own.
    if (all.size() > 1 && activates_environment(all.front())) all.erase(all.begin());
    if (all.size() == 1 && all.front().simple && !all.front().control && all.front().alone) {
      return all.front().words;
    }
    return {"/bin/sh", "-c", one.text};
  }

  void finish() {
    memory_.lists.tell_unused(to_);
    std::vector<std::string> words = build_.entrypoint;
    if (!words.empty()) {
      entrypoint_ = {};
      command_ = {};
    }
    if (!build_.command.empty()) command_ = {};
    if (!entrypoint_.keyword.empty()) words = words_of(entrypoint_);
    // A shell's ENTRYPOINT takes no arguments.
    const bool takes = entrypoint_.keyword.empty() || exec_form(entrypoint_.text).has_value();
    if (!command_.keyword.empty() && takes) {
      for (std::string& word : words_of(command_)) words.push_back(std::move(word));
    } else if (!command_.keyword.empty()) {
      leave_out(command_, "the shell's ENTRYPOINT takes no arguments");
    }
    words.insert(words.end(), build_.command.begin(), build_.command.end());
    const bool clean = std::none_of(words.begin(), words.end(), [](const std::string& word) {
      return has_control(word, "\t\n");
    });
    if (!words.empty() && (!clean || words.front().empty())) {
      return leave_out(command_.keyword.empty() ? entrypoint_ : command_,
                       "not words that a command can be made of");
    }
    to_.draft.command = own_command(std::move(words));
  }

  const ConversionSource& source_;
  Conversion& to_;
  const DockerVariables& args_;  ///< given from outside
  const DockerBuild& build_;
  std::string target_;  ///< lower case; empty: the last stage
  fs::path context_;
  CopiedFiles files_;
  DockerStages stages_;
  DockerVariables globals_;
  DockerVariables arguments_;
  DockerVariables variables_;
  std::string workdir_ = "/";
  DockerInstruction command_;
  DockerInstruction entrypoint_;
  CommandsMemory memory_;
  std::set<std::string> unset_;  ///< arguments without a value
  bool bash_ = false;
  std::set<std::string> lost_;        ///< variables of ENV whose value is not known
  DockerVariables dropped_;           ///< of ENV, and not in the recipe's `env`
  std::set<std::string> told_users_;  ///< arguments that name a user
  std::set<fs::path> followed_;       ///< Dockerfiles that begin with what this one builds
  bool inherited_ = false;            ///< CMD is that of another Dockerfile
  bool installs_ = false;             ///< of the stage that is read, what it installs is copied
  std::set<std::size_t> judged_;      ///< stages whose image is in the recipe, or told
  bool other_ = false;                ///< a stage is read that is not in the image
  std::set<std::size_t> taken_;       ///< stages
  std::set<std::size_t> installing_;  ///< stages whose environment is copied into the last one
  std::set<std::size_t> open_;        ///< stages that are being read
  std::map<std::size_t, CopiedFiles> other_stages_;
};

}  // namespace

void convert_dockerfile(const ConversionSource& source, Conversion& to, const DockerBuild& build) {
  DockerConversion(source, build, to).convert();
}

}  // namespace mlenv
