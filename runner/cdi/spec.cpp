#include "runner/cdi/spec.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <span>

#include "base/text.hpp"
#include "recipes/mistakes.hpp"
#include "recipes/text.hpp"
#include "recipes/yaml.hpp"

namespace mlenv {
namespace {

using CdiWords = std::vector<std::string>;
using MemberNames = std::span<const std::string_view>;

/// Letters and digits at both ends, those and `also` between them; at its start a letter alone
/// where `letter_first`.
bool is_cdi_name(std::string_view text, std::string_view also, bool letter_first) {
  if (text.empty() || !is_alphanumeric(text.front()) || !is_alphanumeric(text.back())) return false;
  if (letter_first && !is_letter(text.front())) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return is_alphanumeric(c) || also.find(c) != std::string_view::npos;
  });
}

bool is_cdi_kind(std::string_view text) {
  const std::size_t slash = text.find('/');
  return slash != std::string_view::npos && is_cdi_name(text.substr(0, slash), "_-.", true) &&
         is_cdi_name(text.substr(slash + 1), "_-", true);
}

bool is_device_name(std::string_view text) { return is_cdi_name(text, "_-.:", false); }

/// Decimal, or octal with `0` or `0o` in front, as YAML has modes.
std::optional<std::uint64_t> yaml_number(std::string_view text) {
  int base = 10;
  if (text.size() > 1 && text.front() == '0') {
    base = 8;
    text.remove_prefix(text[1] == 'o' ? 2 : 1);
  }
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return value;
}

bool is_read_version(std::string_view text) {
  constexpr std::array<std::string_view, 9> kRead = {"0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0",
                                                     "0.8.0", "1.0.0", "0.8.1", "1.1.0"};
  if (text.starts_with('v')) text.remove_prefix(1);
  return std::find(kRead.begin(), kRead.end(), text) != kRead.end();
}

/// Reads one file; mistakes are gathered.
class SpecReader {
 public:
  explicit SpecReader(Mistakes& mistakes) : mistakes_(&mistakes) {}

  CdiSpec spec(const YamlNode& root);

 private:
  void complain(const YamlNode& at, std::string message) {
    // What is not there has no place.
    mistakes_->add(std::max(at.line, 1), std::max(at.column, 1), std::move(message));
  }
  /// Calls `take(name, value)` for each member with a value; names what is not among `names`.
  template <class Take>
  void members(const YamlNode& map, std::string_view what, MemberNames names, Take&& take) {
    if (map.kind != YamlKind::map) return complain(map, fmt::format("{} is a mapping", what));
    CdiWords seen;
    for (const YamlMember& one : map.members) {
      const std::string& name = one.key.text;
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
        complain(one.key, fmt::format("`{}` is there twice", name));
      } else if (std::find(names.begin(), names.end(), name) != names.end()) {
        if (one.value.kind != YamlKind::null) take(std::string_view(name), one.value);
      } else if (name == "intelRdt" || name == "netDevices") {
        complain(one.key, fmt::format("mlenv cannot apply `{}`", name));
      } else {
        complain(one.key,
                 fmt::format("{} has no member `{}`{}", what, name, suggestion(name, names)));
      }
      seen.push_back(name);
    }
  }
  template <class Take>
  void items(const YamlNode& list, std::string_view what, Take&& take) {
    if (list.kind != YamlKind::list) return complain(list, fmt::format("`{}` is a list", what));
    for (const YamlNode& item : list.items) take(item);
  }
  std::string text(const YamlNode& value, std::string_view what) {
    if (value.kind != YamlKind::scalar) complain(value, fmt::format("`{}` is a text", what));
    return value.text;
  }
  std::string path(const YamlNode& value, std::string_view what) {
    std::string found = text(value, what);
    if (value.kind == YamlKind::scalar && !found.starts_with('/')) {
      complain(value, fmt::format("`{}` is an absolute path", what));
    }
    return found;
  }
  CdiWords texts(const YamlNode& value, std::string_view what) {
    CdiWords found;
    items(value, what, [&](const YamlNode& item) { found.push_back(text(item, what)); });
    return found;
  }
  std::optional<std::uint64_t> number(const YamlNode& value, std::string_view what) {
    const auto found = value.kind == YamlKind::scalar ? yaml_number(value.text) : std::nullopt;
    // Ids, modes and numbers of devices have 32 bits at most.
    if (found && *found <= std::numeric_limits<std::uint32_t>::max()) return found;
    complain(value, fmt::format("`{}` is a whole number, from 0 to 4294967295", what));
    return std::nullopt;
  }
  void require(const YamlNode& at, std::string_view what, std::string_view name, bool there) {
    if (!there && at.kind == YamlKind::map) complain(at, fmt::format("{} lacks `{}`", what, name));
  }

  CdiNode node(const YamlNode& from);
  CdiMount mount(const YamlNode& from);
  CdiHook hook(const YamlNode& from);
  CdiWords variables(const YamlNode& from);
  CdiEdits edits(const YamlNode& from);
  CdiDevice device(const YamlNode& from);

  Mistakes* mistakes_;
};

CdiNode SpecReader::node(const YamlNode& from) {
  static constexpr std::array<std::string_view, 9> kNames = {
      "path", "hostPath", "type", "major", "minor", "fileMode", "permissions", "uid", "gid"};
  constexpr std::string_view kWhat = "a device node";
  CdiNode made;
  members(from, kWhat, kNames, [&](std::string_view name, const YamlNode& value) {
    if (name == "path") made.path = path(value, name);
    if (name == "hostPath") made.host_path = path(value, name);
    if (name == "major") made.major = number(value, name);
    if (name == "minor") made.minor = number(value, name);
    if (name == "fileMode") made.mode = number(value, name);
    if (name == "uid") made.user = number(value, name);
    if (name == "gid") made.group = number(value, name);
    if (name == "type") {
      made.type = text(value, name);
      if (made.type.size() != 1 || std::string_view("bcup").find(made.type) == std::string::npos) {
        complain(value, "`type` is `b`, `c`, `u` or `p`");
      }
    }
    if (name == "permissions") {
      made.permissions = text(value, name);
      if (made.permissions.find_first_not_of("rwm") != std::string::npos) {
        complain(value, "`permissions` are letters of `rwm`");
      }
    }
  });
  require(from, kWhat, "path", !made.path.empty());
  return made;
}

CdiMount SpecReader::mount(const YamlNode& from) {
  static constexpr std::array<std::string_view, 4> kNames = {"hostPath", "containerPath", "type",
                                                             "options"};
  constexpr std::string_view kWhat = "a mount";
  CdiMount made;
  members(from, kWhat, kNames, [&](std::string_view name, const YamlNode& value) {
    // Of a file system that has no folder on the host, such as a tmpfs, it is a name.
    if (name == "hostPath") made.host_path = text(value, name);
    if (name == "containerPath") made.path = path(value, name);
    if (name == "type") made.type = text(value, name);
    if (name == "options") made.options = texts(value, name);
  });
  require(from, kWhat, "hostPath", !made.host_path.empty());
  require(from, kWhat, "containerPath", !made.path.empty());
  return made;
}

CdiHook SpecReader::hook(const YamlNode& from) {
  static constexpr std::array<std::string_view, 5> kNames = {"hookName", "path", "args", "env",
                                                             "timeout"};
  static constexpr std::array<std::string_view, 6> kWhen = {
      "prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"};
  constexpr std::string_view kWhat = "a hook";
  CdiHook made;
  members(from, kWhat, kNames, [&](std::string_view name, const YamlNode& value) {
    if (name == "path") made.path = path(value, name);
    if (name == "args") made.argv = texts(value, name);
    if (name == "env") made.env = variables(value);
    if (name == "timeout") made.timeout_seconds = number(value, name);
    if (name != "hookName") return;
    made.when = text(value, name);
    if (std::find(kWhen.begin(), kWhen.end(), made.when) == kWhen.end()) {
      complain(value, fmt::format("no runtime has a hook `{}`{}", made.when,
                                  suggestion(made.when, kWhen)));
    }
  });
  require(from, kWhat, "hookName", !made.when.empty());
  require(from, kWhat, "path", !made.path.empty());
  return made;
}

CdiWords SpecReader::variables(const YamlNode& from) {
  CdiWords found;
  items(from, "env", [&](const YamlNode& item) {
    found.push_back(text(item, "env"));
    const std::size_t equals = item.text.find('=');
    if (item.kind == YamlKind::scalar && (equals == 0 || equals == std::string::npos)) {
      complain(item, "a variable is `NAME=VALUE`");
    }
  });
  return found;
}

CdiEdits SpecReader::edits(const YamlNode& from) {
  static constexpr std::array<std::string_view, 5> kNames = {"env", "deviceNodes", "mounts",
                                                             "hooks", "additionalGids"};
  CdiEdits made;
  members(from, "`containerEdits`", kNames, [&](std::string_view name, const YamlNode& value) {
    if (name == "env") made.env = variables(value);
    if (name == "deviceNodes") {
      items(value, name, [&](const YamlNode& item) { made.nodes.push_back(node(item)); });
    }
    if (name == "mounts") {
      items(value, name, [&](const YamlNode& item) { made.mounts.push_back(mount(item)); });
    }
    if (name == "hooks") {
      items(value, name, [&](const YamlNode& item) { made.hooks.push_back(hook(item)); });
    }
    if (name == "additionalGids") {
      items(value, name, [&](const YamlNode& item) {
        if (const auto group = number(item, name)) made.groups.push_back(*group);
      });
    }
  });
  return made;
}

CdiDevice SpecReader::device(const YamlNode& from) {
  static constexpr std::array<std::string_view, 3> kNames = {"name", "annotations",
                                                             "containerEdits"};
  constexpr std::string_view kWhat = "a device";
  CdiDevice made;
  members(from, kWhat, kNames, [&](std::string_view name, const YamlNode& value) {
    if (name == "containerEdits") made.edits = edits(value);
    if (name != "name") return;
    made.name = text(value, name);
    if (value.kind == YamlKind::scalar && !is_device_name(made.name)) {
      complain(value, fmt::format("`{}` is no name of a device", made.name));
    }
  });
  require(from, kWhat, "name", !made.name.empty());
  return made;
}

CdiSpec SpecReader::spec(const YamlNode& root) {
  static constexpr std::array<std::string_view, 5> kNames = {"cdiVersion", "kind", "annotations",
                                                             "devices", "containerEdits"};
  constexpr std::string_view kWhat = "a CDI specification";
  CdiSpec made;
  bool has_version = false;
  members(root, kWhat, kNames, [&](std::string_view name, const YamlNode& value) {
    if (name == "containerEdits") made.edits = edits(value);
    if (name == "cdiVersion") {
      has_version = true;
      if (!is_read_version(text(value, name))) {
        complain(value,
                 fmt::format("mlenv reads versions 0.3.0 to 1.1.0 of CDI, not `{}`", value.text));
      }
    }
    if (name == "kind") {
      made.kind = text(value, name);
      if (value.kind == YamlKind::scalar && !is_cdi_kind(made.kind)) {
        complain(value, fmt::format("`{}` is not `VENDOR/CLASS`", made.kind));
      }
    }
    if (name != "devices") return;
    items(value, name, [&](const YamlNode& item) {
      CdiDevice one = device(item);
      if (made.find(one.name) != nullptr) {
        complain(item, fmt::format("device `{}` is there twice", one.name));
      }
      made.devices.push_back(std::move(one));
    });
  });
  require(root, kWhat, "cdiVersion", has_version);
  require(root, kWhat, "kind", !made.kind.empty());
  require(root, kWhat, "devices", !made.devices.empty());
  return made;
}

template <class T>
void add_all(std::vector<T>& into, const std::vector<T>& from) {
  into.insert(into.end(), from.begin(), from.end());
}

}  // namespace

void CdiEdits::append(const CdiEdits& other) {
  add_all(env, other.env);
  add_all(nodes, other.nodes);
  add_all(mounts, other.mounts);
  add_all(hooks, other.hooks);
  add_all(groups, other.groups);
  add_all(library_folders, other.library_folders);
}

const CdiDevice* CdiSpec::find(std::string_view name) const {
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [&](const CdiDevice& one) { return one.name == name; });
  return found == devices.end() ? nullptr : &*found;
}

CdiSpec parse_cdi_spec(std::string_view text, std::string_view shown) {
  Mistakes mistakes{fs::path(shown), std::string(text)};
  const YamlDocument document = parse_yaml(text);
  for (const YamlMistake& one : document.mistakes) mistakes.add(one.line, one.column, one.message);
  CdiSpec spec;
  if (document.complete) spec = SpecReader(mistakes).spec(document.root);
  if (!mistakes.empty()) {
    throw mistakes.error("bad-cdi").hint(
        "correct it, or write it anew with the tool that made it (`nvidia-ctk cdi generate`)");
  }
  spec.shown = shown;
  return spec;
}

std::optional<CdiName> parse_cdi_name(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  CdiName name{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
  if (!is_cdi_kind(name.kind) || !is_device_name(name.device)) return std::nullopt;
  return name;
}

}  // namespace mlenv
