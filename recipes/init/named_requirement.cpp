#include "recipes/init/named_requirement.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "base/error.hpp"
#include "recipes/package_address.hpp"
#include "recipes/project_name.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// `libs/x[dev] ; marker`, taken apart.
struct BareAddress {
  std::string_view place;
  std::string_view extras;
  std::string_view marker;
};

/// Where a marker begins behind an address: at a semicolon with a blank on either side, as pip
/// reads it; the text's size where there is none.
std::size_t marker_after_address(std::string_view text) {
  return std::min({text.find(" ;"), text.find("; "), text.find("\t;"), text.size()});
}

BareAddress bare_address(std::string_view text) {
  BareAddress bare;
  const std::size_t semicolon = marker_after_address(text);
  bare.place = trim(text.substr(0, semicolon));
  if (semicolon < text.size()) {
    bare.marker = trim(text.substr(text.find(';', semicolon) + 1));
  }
  const std::size_t open = bare.place.rfind('[');
  if (bare.place.ends_with(']') && open != std::string_view::npos) {
    bare.extras = bare.place.substr(open);
    bare.place = bare.place.substr(0, open);
  }
  return bare;
}

/// `x @ https://host/x.whl; marker`, whose `@` is at `at`: PEP 508 wants a blank there.
void set_marker_apart(std::string& text, std::size_t at) {
  const std::size_t semicolon = marker_after_address(text);
  if (semicolon > at && semicolon < text.size() && text[semicolon] == ';') {
    text.insert(semicolon, " ");
  }
}

/// `git+git@host:team/x.git` as `git+ssh://git@host/team/x.git`.
std::string with_scheme(std::string_view place) {
  constexpr std::string_view kGitPlus = "git+";
  if (!place.starts_with(kGitPlus) || place.find("://") != std::string_view::npos) {
    return std::string(place);
  }
  std::string rest(place.substr(kGitPlus.size()));
  const std::size_t colon = rest.find(':');
  const std::size_t at = rest.find('@');
  if (at == std::string::npos || colon == std::string::npos || at > colon) {
    return std::string(place);
  }
  rest[colon] = '/';
  return "git+ssh://" + rest;
}

/// `[dev]` of `#egg=clip[dev]`, taken out of the address.
std::string extras_of_egg(std::string& place) {
  const std::size_t egg = place.find("egg=");
  const std::size_t open = egg == std::string::npos ? egg : place.find('[', egg);
  if (open == std::string::npos) return {};
  const std::size_t close = place.find(']', open);
  if (close == std::string::npos) return {};
  std::string extras = place.substr(open, close - open + 1);
  place.erase(open, close - open + 1);
  return extras;
}

std::string name_of_repository(std::string_view url) {
  std::string_view name = url.substr(url.rfind('/') + 1);
  if (name.ends_with(".git")) name.remove_suffix(4);
  return is_wheel_name(normalise_wheel_name(name)) ? std::string(name) : std::string();
}

/// Empty where its files tell none, or cannot be read: what is wrong with them is told where they
/// are wanted.
std::string name_in_folder(const fs::path& folder) {
  try {
    return project_name(folder).value_or("");
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

bool is_conda_build_path(std::string_view address) {
  if (!address.starts_with("file:")) return false;
  constexpr std::array<std::string_view, 8> kPlaces = {
      "/croot/", "/croots/", "feedstock_root", "conda-bld", "/tmp/build/80754af9",
      "/abs_",   "/ci_",     "/concourse/"};
  if (std::any_of(kPlaces.begin(), kPlaces.end(),
                  [&](std::string_view one) { return says(address, one); })) {
    return true;
  }
  // NAME_1700000000000/work: the time when conda-build began.
  const std::size_t work = address.find("/work");
  if (work == std::string_view::npos) return false;
  const std::string_view before = address.substr(0, work);
  const std::size_t digits = before.find_last_not_of("0123456789");
  return digits != std::string_view::npos && before[digits] == '_' && before.size() - digits > 9;
}

NamedRequirement named_requirement(const fs::path& folder, std::string_view text) {
  NamedRequirement named{std::string(trim(text))};
  const std::size_t at = named.text.find('@');
  if (at != std::string::npos &&
      is_conda_build_path(trim(std::string_view(named.text).substr(at + 1)))) {
    named.text = trim(std::string_view(named.text).substr(0, at));
    named.dropped_path = true;
    return named;
  }
  if (!is_bare_address(named.text)) {
    if (at != std::string::npos) set_marker_apart(named.text, at);
    return named;
  }
  const BareAddress bare = bare_address(named.text);
  std::string place = with_scheme(bare.place);
  std::string extras = extras_of_egg(place);
  if (extras.empty()) extras = bare.extras;
  std::string name;
  const auto read = parse_package_address(place, &name);
  const auto* address = std::get_if<PackageAddress>(&read);
  if (address == nullptr) return named;
  if (!is_wheel_name(normalise_wheel_name(name))) name.clear();
  if (const auto file = parse_release_file(address->file()); name.empty() && file) {
    name = file->name;
  }
  if (name.empty() && address->kind == AddressKind::path) {
    name = name_in_folder((folder.empty() ? "." : folder) / address->place / address->subdirectory);
  } else if (name.empty() && address->kind == AddressKind::git) {
    name = name_of_repository(address->place);
    const std::string& below = address->subdirectory;
    const std::string last = name_of_repository(below);
    constexpr std::array<std::string_view, 11> kUsual = {
        "python",  "py",    "src", "lib",     "pythonapi", "bindings",
        "package", "torch", "jax", "pytorch", "tensorflow"};
    if (!below.empty() && !last.empty() && !is_among(kUsual, to_lower(last))) name = last;
    if (!name.empty()) {
      named.note = fmt::format(
          "`{}` is the repository's or folder's name: write another before the ` @ ` where the "
          "project has one",
          name);
    }
  }
  if (name.empty()) return named;
  std::string whole = name + extras + " @ " + address->str();
  if (!bare.marker.empty()) whole += fmt::format(" ; {}", bare.marker);  // a view of `named.text`
  named.text = std::move(whole);
  return named;
}

}  // namespace mlenv
