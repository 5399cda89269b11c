// Requirements files as pip reads them (pip's documentation, "Requirements File Format").
#include <algorithm>
#include <array>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/init/conversion.hpp"
#include "recipes/init/named_requirement.hpp"
#include "recipes/project_path.hpp"
#include "recipes/recipe.hpp"
#include "recipes/requirement_files.hpp"
#include "recipes/steering.hpp"
#include "recipes/text.hpp"
#include "recipes/wheel_name.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kMostNamedFiles = 64;

struct RefusedOption {
  std::string_view name;
  std::string_view why;
};
constexpr std::string_view kOwnProject =
    "the project itself, whose name stands nowhere in plain words: write `NAME @ .` into "
    "`packages`, or "
    "copy its code with `files`";
constexpr std::string_view kNamed =
    "it counts where the file itself is named, `requirements: [FILE]`";
constexpr std::array<RefusedOption, 6> kRefusedOptions = {
    {{"-c", kNamed},
     {"--constraint", kNamed},
     {"--prefer-binary", "the recipe says it with `prefer-binary`"},
     {"--require-hashes", kNamed},
     {"--trusted-host",
      "certificates are checked always; `SSL_CERT_FILE` names private authorities"},
     {"--no-index", "name the index to use in `sources`"}}};

/// A line as pip sees it: continued ones joined, without its comment.
struct Line {
  int number;
  std::string text;
};

std::vector<Line> joined_lines(std::string_view text) {
  std::vector<Line> lines;
  bool continued = false;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    while (line.ends_with('\r')) line.remove_suffix(1);
    const bool goes_on = line.ends_with('\\');
    if (goes_on) line.remove_suffix(1);
    if (continued) {
      lines.back().text += line;
    } else {
      lines.push_back({number, std::string(line)});
    }
    continued = goes_on;
  }
  for (Line& line : lines) {
    std::size_t at = line.text.starts_with('#') ? 0 : line.text.find(" #");
    at = std::min(at, line.text.find("\t#"));
    if (at != std::string::npos) line.text.erase(at);
    line.text = trim(line.text);
  }
  std::erase_if(lines, [](const Line& line) { return line.text.empty(); });
  return lines;
}

/// `.`, `./libs/x` of `-e .` and `./libs/x[dev]`: from where pip is started.
std::vector<std::string> installed_folders(std::string_view text) {
  std::vector<std::string> folders;
  for (const Line& line : joined_lines(text)) {
    std::string_view rest = line.text;
    for (const std::string_view option : {"-e", "--editable"}) {
      if (rest.starts_with(option)) rest = trim(rest.substr(option.size()));
    }
    rest = rest.substr(0, rest.find_first_of("[ ;"));
    if (rest == "." || rest.starts_with("./")) folders.emplace_back(rest);
  }
  return folders;
}

}  // namespace

/// One of them; the conversion gets what it holds.
class RequirementsFile {
 public:
  RequirementsFile(Conversion& to, fs::path path, std::string shown)
      : to_(to), path_(std::move(path)), shown_(std::move(shown)) {}

  void read(const std::string& text) {
    for (const Line& line : joined_lines(text)) read_line({shown_, line.number}, line.text);
    if (hashes_ > 0) {
      to_.leave_out(first_hash_, fmt::format("--hash, of {}", counted(hashes_, "requirement")),
                    "the lock has the hash of each wheel; `requirements: [FILE]` holds it against "
                    "these");
    }
  }

  void read_line(const SourcePlace& place, const std::string& text) {
    if (text.starts_with('-')) {
      option(place, text);
    } else {
      requirement(place, text);
    }
  }

 private:
  void requirement(const SourcePlace& place, const std::string& text) {
    const std::size_t option = text.find(" --");
    if (option != std::string::npos) {
      if (text.compare(option, 7, " --hash") != 0) {
        to_.leave_out(place, text.substr(option), "options of a single package have no key");
      } else if (++hashes_ == 1) {
        first_hash_ = place;
      }
    }
    to_.python_package(place, text.substr(0, option));
  }

  void option(const SourcePlace& place, const std::string& text) {
    std::size_t end = text.find_first_of(" \t=");
    std::string name = text.substr(0, end);
    if (!name.starts_with("--") && name.size() > 2) {  // `-rother.txt`
      name.resize(2);
      end = 1;
    }
    std::string value(end == std::string::npos ? "" : trim(text.substr(end + 1)));
    value.erase(std::min(value.find(" ;"), value.size()));  // a marker, which pip has not here
    if (name == "-r" || name == "--requirement") return include(place, text, value);
    if (name == "-i" || name == "--index-url") return to_.python_index(place, value, true);
    if (name == "--extra-index-url") return to_.python_index(place, value, false);
    if (name == "-e" || name == "--editable") return editable(place, text, value);
    if (name == "-f" || name == "--find-links") {
      if (says(value, "://")) return to_.page_of_files(place, value);
      return to_.folder_of_files(place, path_, value);
    }
    if (choice(name, value)) return;
    for (const RefusedOption& one : kRefusedOptions) {
      if (one.name == name) return to_.leave_out(place, text, one.why);
    }
    to_.leave_out(place, text, "an option of pip that no key stands for");
  }

  /// What the recipe has keys for.
  bool choice(std::string_view name, std::string_view value) {
    DraftChoice& choice = to_.draft.choice;
    if (name == "--pre") choice.prerelease = "allow";
    if (name == "--no-binary") choose(value, choice.no_binary);
    if (name == "--only-binary") choose(value, choice.only_binary);
    return name == "--pre" || name == "--no-binary" || name == "--only-binary";
  }

  /// `numpy,scipy`, `:all:`; `:none:` takes back what stands before it.
  static void choose(std::string_view value, std::vector<std::string>& list) {
    for (const std::string_view one : split(value, ',')) {
      const std::string name = normalise_wheel_name(trim(one));
      if (trim(one) == ":none:") {
        list.clear();
      } else if (trim(one) == kAllPackages) {
        list = {std::string(kAllPackages)};
      } else if (is_wheel_name(name)) {
        list.push_back(name);
      }
    }
  }

  void editable(const SourcePlace& place, const std::string& text, const std::string& value) {
    const bool own = value.starts_with(".[") || value == "." || value == "./";
    if (own && named_requirement(to_.folder(), value).text == value) {
      return to_.leave_out(place, text, kOwnProject);
    }
    to_.python_package(place, value);
  }

  void include(const SourcePlace& place, const std::string& text, const std::string& value) {
    const fs::path path = path_.parent_path() / value;
    std::error_code unknown;
    if (value.empty() || !fs::is_regular_file(path, unknown)) {
      return to_.leave_out(place, text, "there is no such file here");
    }
    const fs::path parent = fs::path(shown_).parent_path();
    to_.requirements(path, (parent / value).lexically_normal().string(),
                     read_small_file(path, size_limit::kConverted));
  }

  Conversion& to_;
  fs::path path_;
  std::string shown_;
  std::size_t hashes_ = 0;
  SourcePlace first_hash_;
};

/// How `requirements` names the file: where it says more than `packages` can, constraints and
/// hashes, lies in the recipe's folder, and holds nothing that the key refuses.
std::optional<std::string> Conversion::name_for_requirements(const fs::path& real,
                                                             const std::string& text) const {
  const std::vector<Line> lines = joined_lines(text);
  const bool says_more = std::any_of(lines.begin(), lines.end(), [](const Line& line) {
    return line.text.starts_with("-c") || line.text.starts_with("--constraint") ||
           line.text.starts_with("--require-hashes") ||
           line.text.find(" --hash") != std::string::npos;
  });
  if (!says_more) return std::nullopt;
  std::error_code unknown;
  const fs::path folder = fs::weakly_canonical(folder_.empty() ? "." : folder_, unknown);
  std::string name = real.lexically_relative(folder).string();
  const auto clean = clean_project_path(name);
  if (!std::holds_alternative<std::string>(clean)) return std::nullopt;
  try {
    const std::string text_of_recipe = fmt::format(
        "name: x\nbase: debian:bookworm\nrequirements: [{}]\n", nlohmann::json(name).dump());
    read_requirement_files(parse_recipe(text_of_recipe, folder / "recipe.yaml"));
  } catch (const Error&) {  // its mistakes are told line by line
    return std::nullopt;
  }
  return name;
}

/// The recipe gets the lines, and goes where others read it: they are not to come from just any
/// file that a cloned repository names.
bool Conversion::holds(const fs::path& real) const {
  return !leads_out(real, folder_) || !leads_out(real, folder_of_named_);
}

bool Conversion::has_read(const fs::path& requirements) const {
  std::error_code unknown;
  return read_.contains(fs::weakly_canonical(requirements, unknown));
}

void Conversion::requirement_line(const SourcePlace& place, const std::string& text,
                                  const fs::path& file) {
  for (const Line& line : joined_lines(text)) {
    RequirementsFile(*this, file, place.file).read_line(place, line.text);
  }
}

void Conversion::requirements(const fs::path& path, const std::string& shown,
                              const std::string& bytes) {
  const std::string text = decoded_text(bytes);
  std::error_code unknown;
  const fs::path real = fs::weakly_canonical(path, unknown);
  if (!read_.insert(real).second) return;
  if (!holds(real)) {
    return leave_out({shown, 0}, shown,
                     "it lies neither in the recipe's folder nor in that of the file converted");
  }
  if (read_.size() > kMostNamedFiles)
    return leave_out({shown, 0}, shown, "more files than mlenv reads");
  if (utf8_fault(text) != std::string::npos) {
    leave_out({shown, 0}, shown, "not UTF-8");
    return;
  }
  if (auto name = name_for_requirements(real, text)) {
    draft.requirements.push_back({*std::move(name)});
    for (const std::string& folder : installed_folders(text)) projects_.push_back(folder_ / folder);
    return;
  }
  RequirementsFile(*this, path, shown).read(text);
}

void Conversion::made_requirements(const fs::path& path, const std::string& shown,
                                   const std::string& text) {
  std::error_code unknown;
  if (!path.empty() && !holds(fs::weakly_canonical(path, unknown))) {
    return leave_out({shown, 0}, shown,
                     "it lies neither in the recipe's folder nor in that of the file converted");
  }
  RequirementsFile(*this, path.empty() ? folder_ / "requirements.txt" : path, shown).read(text);
}

}  // namespace mlenv
