#include "recipes/init/copied_files.hpp"

#include <algorithm>

#include <fnmatch.h>

#include <fmt/core.h>

#include "recipes/init/build_commands.hpp"
#include "recipes/init/docker_words.hpp"
#include "recipes/logins.hpp"
#include "recipes/recipe.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Absolute, without `.`, `..` and a `/` at its end.
std::string place_in_image(std::string_view path, const std::string& workdir) {
  fs::path whole = (fs::path(workdir) / path).lexically_normal();
  if (!whole.has_filename() && whole != "/") whole = whole.parent_path();
  return whole.string();
}

bool is_archive(const std::string& name) {
  for (const std::string_view ending :
       {".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst"}) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

}  // namespace

CopiedFiles::CopiedFiles(const fs::path& context, Conversion& to)
    : context_(context.empty() ? "." : context), to_(&to) {
  std::error_code unknown;
  const fs::path from = fs::weakly_canonical(to.folder().empty() ? "." : to.folder(), unknown);
  const fs::path relative = fs::weakly_canonical(context_, unknown).lexically_relative(from);
  reachable_ = !relative.empty() && *relative.begin() != "..";
  if (reachable_ && relative != ".") prefix_ = relative.string() + '/';
}

bool CopiedFiles::copy_from(const SourcePlace& place, const CopiedFiles& stage,
                            const std::string& source, const std::string& target,
                            const std::string& workdir) {
  const std::string begin = place_in_image(source, "/");
  const std::string where = place_in_image(target, workdir);
  bool some = false;
  for (const auto& [there, here] : stage.copied_) {
    if (there != begin && !there.starts_with(begin == "/" ? begin : begin + '/')) continue;
    const std::string from = here.lexically_normal().lexically_relative(context_).string();
    const fs::path inside = fs::path(there).lexically_relative(begin);
    one(place, from.empty() ? "." : from,
        inside == "." ? where : place_in_image(inside.string(), where), false);
    some = true;
  }
  return some;
}

bool CopiedFiles::flags(const SourcePlace& place, const DockerInstruction& instruction) {
  bool usable = true;
  if (only_find_) return instruction.heredocs.empty();
  for (const std::string& flag : instruction.flags) {
    const std::string text = instruction.keyword + ' ' + flag;
    if (flag.starts_with("--chown") || flag.starts_with("--chmod")) {
      to_->leave_out(
          place, text,
          "copied files are root's, with mode 0755 where they can be executed and 0644 otherwise");
    } else if (!flag.starts_with("--link")) {
      to_->leave_out(place, text + ' ' + instruction.text,
                     flag.starts_with("--from") ? "it is copied out of another stage or image"
                                                : "no key of the recipe stands for it");
      usable = false;
    }
  }
  return usable;
}

void CopiedFiles::copy(const SourcePlace& place, const DockerInstruction& instruction,
                       const DockerVariables& known, const std::string& workdir) {
  if (!flags(place, instruction)) return;
  const auto leave_out = [&](std::string_view why) {
    to_->leave_out(place, instruction.keyword + ' ' + instruction.text, why);
  };
  if (!instruction.heredocs.empty())
    return leave_out("write it to a file of its own, and name that in `files`");
  bool complete = true;
  std::vector<std::string> words;
  if (const auto items = exec_form(instruction.text)) {
    for (const std::string& item : *items) words.push_back(expand_variables(item, known, complete));
  } else {
    words = docker_words(instruction.text, known, complete);
  }
  if (!complete) return leave_out("a variable in it has no value in the Dockerfile");
  if (words.size() < 2) return leave_out("it names no target");
  const std::string target = words.back();
  words.pop_back();
  const std::string where = place_in_image(target, workdir);
  const bool into = target.ends_with('/') || target == "." || target == ".." || words.size() > 1 ||
                    where == workdir;
  for (const std::string& source : words) {
    const std::string text = fmt::format("{} {} {}", instruction.keyword, source, target);
    if (source.find("://") != std::string::npos || source.starts_with("git@")) {
      download(place, source, target, workdir, text);
    } else if (instruction.keyword == "ADD" && is_archive(source)) {
      to_->leave_out(place, text, "ADD unpacks it: unpack it here, and name the folder in `files`");
    } else if (source.find_first_of("*?[") != std::string::npos) {
      pattern(place, source, where, into, text);
    } else {
      one(place, source, where, into);
    }
  }
}

/// `ADD https://h.example/tool /usr/bin/tool`: a step fetches it.
void CopiedFiles::download(const SourcePlace& place, const std::string& source,
                           const std::string& target, const std::string& workdir,
                           const std::string& text) {
  if (only_find_) return;
  if (brings_tool(source) || brings_tool(target)) {
    return to_->leave_out(place, text, "not needed: mlenv does without it");
  }
  const std::string name = source.substr(source.rfind('/') + 1);
  const std::string where = place_in_image(
      target.ends_with('/') || target == "." ? target + '/' + name : target, workdir);
  const bool file = source.starts_with("http") && !source.ends_with(".git") && !name.empty() &&
                    name.find_first_of("?#") == std::string::npos &&
                    without_logins(source) == source;
  if (!file || has_control(source) || !is_clean_absolute_path(where)) {
    return to_->leave_out(place, text,
                          "it is downloaded: fetch it once, and name the file in `files`");
  }
  to_->add_step({workdir,
                 {fmt::format("mkdir -p {}\ncurl -fsSL -o {} {}",
                              shell_quoted(fs::path(where).parent_path().string()),
                              shell_quoted(where), shell_quoted(source)),
                  true,
                  {}}});
}

/// `*.py` of one folder: each file by its name.
void CopiedFiles::pattern(const SourcePlace& place, const std::string& source,
                          const std::string& where, bool into, const std::string& text) {
  constexpr std::size_t kMostMatches = 40;
  const fs::path whole = fs::path(source).relative_path().lexically_normal();
  std::vector<std::string> found;
  std::error_code unknown;
  if (whole.parent_path().string().find_first_of("*?[") == std::string::npos) {
    for (const auto& entry : fs::directory_iterator(context_ / whole.parent_path(), unknown)) {
      const std::string name = entry.path().filename().string();
      if (fnmatch(whole.filename().c_str(), name.c_str(), 0) == 0) {
        found.push_back((whole.parent_path() / name).string());
      }
    }
  }
  if (found.empty() || found.size() > kMostMatches) {
    return to_->leave_out(place, text,
                          found.empty()
                              ? "there is no such file here"
                              : "`files` takes no patterns, and this one is of many: name "
                                "each file, or their folder");
  }
  std::sort(found.begin(), found.end());
  for (const std::string& each : found) one(place, each, where, into || found.size() > 1);
}

void CopiedFiles::one(const SourcePlace& place, const std::string& source,
                      const std::string& target, bool into) {
  std::string clean = fs::path(source).relative_path().lexically_normal().string();
  while (clean.size() > 1 && clean.ends_with('/')) clean.pop_back();
  if (clean.empty()) clean = ".";
  std::error_code unknown;
  const fs::path here = context_ / clean;
  const bool folder = fs::is_directory(here, unknown);
  const fs::path name = fs::path(clean).filename();
  const bool below = into && !folder;
  copied_.emplace_back(below ? place_in_image(name.string(), target) : target, here);
  if (only_find_) return;
  const std::string text = fmt::format("COPY {} {}", source, target);
  const std::string mine =
      clean == "." && !prefix_.empty() ? prefix_.substr(0, prefix_.size() - 1) : prefix_ + clean;
  const std::string reserved = reserved_place(target);
  if (!reserved.empty()) {
    unplaced_.push_back({place, text, "nothing can be copied to " + reserved, here});
    return;
  }
  if (clean.starts_with("..") || !reachable_) {
    return to_->leave_out(place, text, "`files` takes what lies in the recipe's own folder");
  }
  if (has_control(source) || !is_clean_absolute_path(target)) {
    return to_->leave_out(place, text, "not paths that `files` can hold");
  }
  if (!fs::exists(here, unknown)) return to_->leave_out(place, text, "there is no such file here");
  const std::string there = below && target != "/" ? target + '/' : target;
  for (const auto& [known, where] : to_->draft.files) {
    if (known != mine) continue;
    if (where != there)
      to_->leave_out(
          place, text,
          "`files` copies each source to one place, and this one goes to another already");
    return;
  }
  if (folder) forget_covered(mine, there);
  to_->draft.files.emplace_back(mine, there);
}

/// `COPY requirements.txt .` and then `COPY . .`: the folder brings the file, too.
void CopiedFiles::forget_covered(const std::string& folder, const std::string& target) {
  std::erase_if(to_->draft.files, [&](const auto& file) {
    const auto& [source, to] = file;
    const std::string begin = folder == "." ? "" : folder + '/';
    if (!source.starts_with(begin) || source == folder) return false;
    const fs::path where =
        to.ends_with('/') ? fs::path(to) / fs::path(source).filename() : fs::path(to);
    return where == fs::path(target) / source.substr(begin.size());
  });
}

std::optional<fs::path> CopiedFiles::find(std::string_view name, const std::string& workdir) const {
  std::error_code unknown;
  const std::string path = place_in_image(name, workdir);
  for (auto at = copied_.rbegin(); at != copied_.rend(); ++at) {
    const auto& [target, here] = *at;
    fs::path found = here;
    if (path != target) {
      const fs::path inside = fs::path(path).lexically_relative(target);
      if (inside.empty() || *inside.begin() == "..") continue;
      found /= inside;
    }
    if (fs::is_regular_file(found, unknown)) {
      read_.insert(here);
      return found.lexically_normal();
    }
  }
  const fs::path beside = context_ / fs::path(name).filename();
  if (fs::is_regular_file(beside, unknown)) return beside.lexically_normal();
  return std::nullopt;
}

void CopiedFiles::inherit(const CopiedFiles& base) {
  copied_.insert(copied_.begin(), base.copied_.begin(), base.copied_.end());
}

void CopiedFiles::tell_unplaced() {
  for (const Unplaced& one : unplaced_) {
    if (!read_.contains(one.here)) to_->leave_out(one.place, one.text, one.why);
  }
  unplaced_.clear();
}

namespace {

/// Below `folder`, part by part of what is left of a pattern.
void match_below(const fs::path& folder, const std::vector<std::string>& parts, std::size_t at,
                 const std::string& name, std::vector<std::string>& found) {
  constexpr std::size_t kMostFound = 100;
  std::error_code unknown;
  if (at == parts.size()) {
    if (found.size() < kMostFound) found.push_back(name);
    return;
  }
  for (const auto& entry : fs::directory_iterator(folder, unknown)) {
    const std::string one = entry.path().filename().string();
    if (fnmatch(parts[at].c_str(), one.c_str(), FNM_PERIOD) != 0 || entry.is_symlink(unknown)) {
      continue;
    }
    match_below(entry.path(), parts, at + 1, name + '/' + one, found);
  }
}

}  // namespace

std::vector<std::string> CopiedFiles::matching(std::string_view pattern,
                                               const std::string& workdir) const {
  const std::string whole = place_in_image(pattern, workdir);
  std::vector<std::string> found;
  for (const auto& [target, here] : copied_) {
    const std::string begin = target == "/" ? target : target + '/';
    std::error_code unknown;
    if (!whole.starts_with(begin) || !fs::is_directory(here, unknown)) {
      if (fnmatch(whole.c_str(), target.c_str(), FNM_PATHNAME) == 0) found.push_back(target);
      continue;
    }
    std::vector<std::string> parts;
    for (const std::string_view part : split(std::string_view(whole).substr(begin.size()), '/')) {
      parts.emplace_back(part);
    }
    match_below(here, parts, 0, target == "/" ? "" : target, found);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  if (pattern.starts_with('/')) return found;
  for (std::string& one : found) one = fs::path(one).lexically_relative(workdir).string();
  return found;
}

}  // namespace mlenv
