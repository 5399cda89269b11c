#include "recipes/init/draft.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/printable.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/logins.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kShownBytes = 160;
constexpr std::size_t kCommentWidth = 98;

/// Whether YAML takes it for this text without quotes, in lists of both kinds.
bool is_plain(std::string_view text) {
  constexpr std::string_view kOthers = "._/-+=<>~!*;@";
  const auto fits = [&](char c) {
    return is_alphanumeric(c) || kOthers.find(c) != std::string_view::npos;
  };
  if (text.empty() || (!is_letter(text.front()) && text.front() != '/')) return false;
  if (text == "null" || text == "Null" || text == "NULL") return false;
  return std::all_of(text.begin(), text.end(), fits);
}

/// U+0085 and U+2028 end a line of YAML 1.1: they and what turns text round are written by number.
std::string yaml_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      out += c;
    }
  }
  return printable_json(out) + '"';
}

std::string draft_scalar(std::string_view text) {
  return is_plain(text) ? std::string(text) : yaml_quoted(text);
}

/// Up to the next blank that is not between backticks.
std::string_view word_of(std::string_view text) {
  bool code = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '`') code = !code;
    if (text[at] == ' ' && !code) return text.substr(0, at);
  }
  return text;
}

/// A sentence as comment lines.
std::string comment(std::string_view text) {
  std::string out;
  std::string line = "#";
  while (!(text = trim(text)).empty()) {
    const std::string_view word = word_of(text);
    if (line.size() > 1 && line.size() + 1 + word.size() > kCommentWidth) {
      out += line + '\n';
      line = "#";
    }
    line += ' ';
    line += word;
    text.remove_prefix(word.size());
  }
  return out + line + '\n';
}

class Writer {
 public:
  std::string text;

  void blank() { text += '\n'; }
  void note(std::string_view sentence) {
    if (!sentence.empty()) text += comment(sentence);
  }
  void key(std::string_view name, std::string_view value) {
    text += fmt::format("{}: {}\n", name, draft_scalar(value));
  }
  void list(std::string_view name, const std::vector<std::string>& items) {
    text += fmt::format("{}:\n", name);
    for (const std::string& item : items) text += fmt::format("  - {}\n", draft_scalar(item));
  }
  void map(std::string_view name, const std::vector<std::pair<std::string, std::string>>& items) {
    text += fmt::format("{}:\n", name);
    for (const auto& [key, value] : items) {
      text += fmt::format("  {}: {}\n", draft_scalar(key),
                          name == "env" ? yaml_quoted(value) : draft_scalar(value));
    }
  }
};

/// An image with its port and digest has colons, which YAML takes in a text but before blanks.
bool is_plain_base(std::string_view text) {
  return !text.empty() && is_alphanumeric(text.front()) && text.back() != ':' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return is_alphanumeric(c) ||
                  std::string_view("._/-:@+").find(c) != std::string_view::npos;
         });
}

void write_step(Writer& writer, const DraftStep& step) {
  const bool lines =
      step.command.find('\n') != std::string::npos && printable_lines(step.command) == step.command;
  const bool alone = !step.network && step.secrets.empty();
  if (!lines && alone) {
    writer.text += fmt::format("  - {}\n", draft_scalar(step.command));
    return;
  }
  writer.text += alone ? "  - |\n" : lines ? "  - run: |\n" : "";
  if (!lines) writer.text += fmt::format("  - run: {}\n", draft_scalar(step.command));
  for (std::string_view rest = step.command; lines && !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    writer.text += fmt::format("{}{}\n", alone ? "    " : "      ", rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (step.network) writer.text += "    network: true\n";
  if (!step.secrets.empty()) {
    writer.text += fmt::format("    secrets: [{}]\n", join(step.secrets, ", "));
  }
}

void write_run(Writer& writer, const Draft& draft) {
  if (draft.run.empty()) return;
  writer.blank();
  writer.note(
      "Commands that are executed while the image is built, on top of all else, by `/bin/sh "
      "-euc`.");
  writer.text += "run:\n";
  for (const DraftStep& step : draft.run) write_step(writer, step);
}

/// A list of names goes on in lines of its own.
std::string told_text(std::string_view text) {
  std::string out;
  std::size_t width = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (width > 0 && width + end > kCommentWidth - 20) {
      out += "\n#     ";
      width = 0;
    } else if (width > 0) {
      out += ' ';
    }
    out += text.substr(0, end);
    width += end + 1;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

void write_told(Writer& writer, const std::vector<LeftOut>& all) {
  for (const LeftOut& one : all) {
    const bool list = one.text.size() > kShownBytes && one.text.find(", ") != std::string::npos;
    const std::string line = one.place.line > 0 ? fmt::format(":{}", one.place.line) : "";
    writer.text += fmt::format("#   {}{}: {}\n", shown_text(one.place.file), line,
                               list ? told_text(one.text) : one.text);
    writer.text += fmt::format("#     {}\n", one.why);
  }
}

void write_head(Writer& writer, const Draft& draft, std::string_view file) {
  writer.text += fmt::format(
      "# What this environment holds. `mlenv lock` says which bytes that is, `mlenv build` makes "
      "an\n"
      "# image of it, `mlenv run` starts a command in it:\n"
      "#\n"
      "#   mlenv build {0}\n"
      "#   mlenv run {0} -- python train.py\n",
      shown_text(file));
  if (!draft.source.empty()) {
    writer.text += fmt::format("#\n# Converted from {}.\n", shown_text(draft.source));
  }
  writer.key("name", draft.name);
  writer.blank();
  writer.note(draft.base_note);
  writer.text +=
      fmt::format("base: {}\n", is_plain_base(draft.base) ? draft.base : yaml_quoted(draft.base));
}

void write_requirements(Writer& writer, const DraftRequirements& item) {
  if (item.extras.empty() && item.groups.empty()) {
    writer.text += fmt::format("  - {}\n", draft_scalar(item.file));
    return;
  }
  writer.text += fmt::format("  - file: {}\n", draft_scalar(item.file));
  const auto names = [&](std::string_view key, const std::vector<std::string>& all) {
    std::vector<std::string> quoted;
    for (const std::string& one : all) quoted.push_back(draft_scalar(one));
    if (!all.empty()) writer.text += fmt::format("    {}: [{}]\n", key, join(quoted, ", "));
  };
  names("extras", item.extras);
  names("groups", item.groups);
}

void write_python(Writer& writer, const Draft& draft) {
  if (!draft.python.empty()) {
    if (is_package_base(draft.base)) {
      writer.note(fmt::format("{}'s own Python; the line is a check, not a choice.",
                              draft.base.starts_with("debian:") ? "Debian" : "Ubuntu"));
    }
    writer.text += fmt::format("python: \"{}\"\n", draft.python);
  }
  writer.blank();
  if (draft.framework.empty()) {
    writer.note("pytorch, tensorflow, jax, or any Python package; a version may follow.");
    writer.text += "# framework: pytorch>=2.9\n";
  } else {
    writer.key("framework", draft.framework);
  }
  writer.note(draft.cuda_note);
  if (!draft.cuda.empty()) {
    writer.text += draft.cuda == "cpu" ? "cuda: cpu\n" : fmt::format("cuda: \"{}\"\n", draft.cuda);
  }
  if (draft.nvcc) writer.text += "libraries: {nvcc: true}\n";
  if (!draft.requirements.empty()) {
    writer.blank();
    writer.note("Files whose requirements count too, with their constraints and hashes.");
    writer.text += "requirements:\n";
    for (const DraftRequirements& item : draft.requirements) write_requirements(writer, item);
  }
  if (!draft.constraints.empty()) {
    writer.blank();
    writer.list("constraints", draft.constraints);
  }
  writer.blank();
  if (draft.packages.empty()) {
    writer.note("Python packages, as pip takes them; `mlenv add PACKAGE` puts one here.");
    writer.text += "# packages:\n#   - numpy>=1.24\n";
  } else {
    writer.list("packages", draft.packages);
  }
}

void write_index(Writer& writer, const Draft& draft) {
  if (draft.index.empty()) return;
  writer.blank();
  writer.note("These packages come from here, and nothing else does.");
  writer.text += "index:\n";
  for (const DraftIndex& one : draft.index) {
    const std::string url = yaml_quoted(one.url);
    writer.text += fmt::format("  {}: {}\n", draft_scalar(one.package),
                               one.find_links ? fmt::format("{{find-links: {}}}", url) : url);
  }
}

std::string inline_list(const std::vector<std::string>& items) {
  std::vector<std::string> quoted;
  for (const std::string& item : items) quoted.push_back(yaml_quoted(item));
  return fmt::format("[{}]", join(quoted, ", "));
}

void write_metadata(Writer& writer, const DraftChoice& choice) {
  if (!choice.metadata.empty()) writer.text += "dependency-metadata:\n";
  for (const DraftMetadata& one : choice.metadata) {
    writer.text += fmt::format("  - name: {}\n", draft_scalar(one.name));
    const auto text = [&](std::string_view key, const std::string& value) {
      if (!value.empty()) writer.text += fmt::format("    {}: {}\n", key, yaml_quoted(value));
    };
    text("version", one.version);
    text("requires-python", one.requires_python);
    writer.text += fmt::format("    requires-dist: {}\n", inline_list(one.requires_dist));
    if (!one.extras.empty()) {
      writer.text += fmt::format("    provides-extra: {}\n", inline_list(one.extras));
    }
  }
}

void write_config_settings(Writer& writer, const std::vector<DraftConfigSetting>& settings) {
  if (!settings.empty()) writer.text += "  config-settings:\n";
  std::string_view package;
  for (const DraftConfigSetting& one : settings) {
    if (!one.package.empty() && one.package != package) {
      writer.text += fmt::format("    {}:\n", draft_scalar(one.package));
    }
    package = one.package;
    writer.text += fmt::format(
        "    {}{}: {}\n", package.empty() ? "" : "  ", draft_scalar(one.key),
        one.values.size() == 1 ? yaml_quoted(one.values.front()) : inline_list(one.values));
  }
}

void write_build(Writer& writer, const DraftChoice& choice) {
  if (choice.build_constraints.empty() && choice.build_requires.empty() &&
      choice.build_env.empty() && choice.config_settings.empty()) {
    return;
  }
  writer.text += "build:\n";
  if (!choice.build_constraints.empty()) {
    writer.text += fmt::format("  constraints: {}\n", inline_list(choice.build_constraints));
  }
  if (!choice.build_requires.empty()) writer.text += "  requires:\n";
  for (const auto& [package, needs] : choice.build_requires) {
    writer.text += fmt::format("    {}: {}\n", draft_scalar(package), inline_list(needs));
  }
  if (!choice.build_env.empty()) writer.text += "  env:\n";
  for (const auto& [package, variables] : choice.build_env) {
    writer.text += fmt::format("    {}:\n", draft_scalar(package));
    for (const auto& [name, value] : variables) {
      writer.text += fmt::format("      {}: {}\n", name, yaml_quoted(value));
    }
  }
  write_config_settings(writer, choice.config_settings);
}

void write_choice(Writer& writer, const DraftChoice& choice) {
  const std::string before = std::exchange(writer.text, {});
  const auto list = [&](std::string_view key, const std::vector<std::string>& items) {
    if (!items.empty()) writer.list(key, items);
  };
  list("constraints", choice.constraints);
  list("overrides", choice.overrides);
  list("exclude", choice.exclude);
  list("no-binary", choice.no_binary);
  list("only-binary", choice.only_binary);
  if (!choice.prerelease.empty()) writer.key("prerelease", choice.prerelease);
  if (!choice.exclude_newer.empty()) writer.key("exclude-newer", choice.exclude_newer);
  write_metadata(writer, choice);
  write_build(writer, choice);
  const std::string said = std::exchange(writer.text, before);
  if (said.empty()) return;
  writer.blank();
  writer.note("How packages are chosen and built.");
  writer.text += said;
}

void write_rest(Writer& writer, const Draft& draft) {
  write_index(writer, draft);
  write_choice(writer, draft.choice);
  writer.blank();
  if (draft.system.empty()) {
    writer.note("Debian packages; `mlenv add --system PACKAGE` puts one here.");
    writer.text += "# system:\n#   - git\n";
  } else {
    writer.list("system", draft.system);
  }
  writer.blank();
  if (draft.env.empty()) {
    writer.note("Environment variables in the image.");
    writer.text += "# env:\n#   PYTHONUNBUFFERED: \"1\"\n";
  } else {
    writer.map("env", draft.env);
  }
  writer.blank();
  if (draft.files.empty()) {
    writer.note(
        "What of this folder is copied into the image; `mlenv run` mounts the folder anyway.");
    writer.text += "# files:\n#   src: /workspace/src\n";
  } else {
    writer.map("files", draft.files);
  }
  write_run(writer, draft);
  if (!draft.workdir.empty()) {
    writer.blank();
    writer.key("workdir", draft.workdir);
  }
  if (!draft.command.empty()) {
    writer.blank();
    std::vector<std::string> words;
    for (const std::string& word : draft.command) words.push_back(draft_scalar(word));
    writer.text += fmt::format("command: [{}]\n", join(words, ", "));
  }
  if (!draft.indexes.empty()) {
    writer.blank();
    writer.text += "sources:\n  pypi:\n";
    for (const std::string& index : draft.indexes) {
      writer.text += fmt::format("    - {}\n", yaml_quoted(index));
    }
  }
}

}  // namespace

namespace {

std::string shown_within(std::string_view text, std::size_t most) {
  std::string clean;
  for (const char c : text) {
    const bool control = has_control(std::string_view(&c, 1));
    if (control || c == ' ') {
      if (!clean.empty() && clean.back() != ' ') clean += ' ';
    } else {
      clean += c;
    }
  }
  clean = printable(trim(without_logins(clean)));
  if (clean.size() <= most) return clean;
  std::size_t cut = most;
  while ((static_cast<unsigned char>(clean[cut]) & 0xC0U) == 0x80) --cut;  // not within a character
  return clean.substr(0, cut) + "…";
}

}  // namespace

std::string shown_text(std::string_view text) { return shown_within(text, kShownBytes); }
std::string shown_sentence(std::string_view text) { return shown_within(text, 4 * kShownBytes); }

std::string sentence(const LeftOut& left_out) {
  std::string place = left_out.place.file;
  if (left_out.place.line > 0) place += fmt::format(":{}", left_out.place.line);
  return fmt::format("{}: `{}`: {}", place, left_out.text, left_out.why);
}

std::string render_draft(const Draft& draft, std::string_view file) {
  Writer writer;
  write_head(writer, draft, file);
  write_python(writer, draft);
  write_rest(writer, draft);
  if (!draft.notes.empty()) {
    writer.text += "\n# To look at:\n";
    write_told(writer, draft.notes);
  }
  if (!draft.left_out.empty()) {
    writer.text += fmt::format("\n# Not carried over from {}:\n", shown_text(draft.source));
    write_told(writer, draft.left_out);
  }
  return writer.text;
}

}  // namespace mlenv
