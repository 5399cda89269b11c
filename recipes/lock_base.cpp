#include "recipes/lock_base.hpp"

#include <array>

#include <fmt/core.h>

#include "recipes/lock_format.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

Layer layer(const TomlReader& reader, const TomlValue& table) {
  if (table.kind != TomlKind::table) reader.fail(table, "a layer is a table in one line");
  constexpr std::array<std::string_view, 4> kKeys = {"type", "size", "sha256", "diff-id"};
  reader.only(table, kKeys);
  const std::string& type = reader.text(table, "type");
  if (oci_layer_type(type) != type) {
    reader.fail(*table.find("type"),
                fmt::format("{} is no media type of an OCI layer", toml_text(type)));
  }
  return {{type, read_digest(reader, table, "sha256"), reader.size(table, "size")},
          read_digest(reader, table, "diff-id"),
          0,
          {}};
}

/// `2.36`
bool is_minor_release(std::string_view text) {
  const std::size_t dot = text.find('.');
  return dot != std::string_view::npos && all_digits(text.substr(0, dot)) &&
         all_digits(text.substr(dot + 1));
}

}  // namespace

std::string render_base(const LockedBase& base, const std::string& folder) {
  std::string out = fmt::format("\n[{}base]\n", folder);
  out += fmt::format("manifest = \"{}\"\n", base.manifest.hex());
  out += fmt::format("config = \"{}\"\n", base.config.digest.hex());
  out += fmt::format("config-size = {}\n", base.config.size_bytes);
  if (!base.interpreter.empty()) {
    out += fmt::format("interpreter = {}\n", toml_text(base.interpreter));
  }
  if (!base.glibc.empty()) out += fmt::format("glibc = {}\n", toml_text(base.glibc));
  out += "layers = [\n";
  for (const Layer& one : base.layers) {
    out += fmt::format("  {{ type = {}, size = {}, sha256 = \"{}\", diff-id = \"{}\" }},\n",
                       toml_text(one.blob.media_type), one.blob.size_bytes, one.blob.digest.hex(),
                       one.diff_id.hex());
  }
  return out + "]\n";
}

LockedBase read_base(const TomlReader& reader, const TomlValue& table, const Lock& lock) {
  constexpr std::array<std::string_view, 6> kKeys = {"manifest",    "config", "config-size",
                                                     "interpreter", "glibc",  "layers"};
  reader.only(table, kKeys);
  LockedBase base{.manifest = read_digest(reader, table, "manifest"),
                  .config = {std::string(kConfigType), read_digest(reader, table, "config"),
                             reader.size(table, "config-size")},
                  .layers = {},
                  .interpreter = reader.optional_text(table, "interpreter"),
                  .glibc = reader.optional_text(table, "glibc")};
  const TomlValue& layers = reader.member(table, "layers", TomlKind::list);
  for (const TomlValue& one : layers.items) base.layers.push_back(layer(reader, one));
  if (base.layers.empty()) reader.fail(layers, "a base has at least one layer");
  if (!base.interpreter.empty() && !is_clean_absolute_path(base.interpreter)) {
    reader.fail(*table.find("interpreter"), "`interpreter` is not a clean absolute path");
  }
  if (base.interpreter.empty() != lock.python.empty()) {
    reader.fail(table, "`interpreter` and `python` in `resolved` go together");
  }
  if (!base.glibc.empty() && !is_minor_release(base.glibc)) {
    reader.fail(*table.find("glibc"), fmt::format("{} is not a version", toml_text(base.glibc)));
  }
  if (base.glibc.empty() && !lock.wheels.empty()) {
    reader.fail(table, "there are wheels but no C library: `glibc` is missing");
  }
  if (!lock.debs.empty() && (lock.distribution.empty() || lock.suite.empty())) {
    reader.fail(table, "there are Debian packages on top of an image that is no `distribution`");
  }
  return base;
}

}  // namespace mlenv
