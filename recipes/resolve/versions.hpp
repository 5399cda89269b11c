#pragma once
// Version numbers, as far as they must be compared here.
#include <compare>
#include <string>
#include <string_view>

namespace mlenv {

/// PEP 440 order of release, pre, post and development releases; local parts count last. Text that
/// is no PEP 440 version compares by its numbers.
std::strong_ordering compare_versions(std::string_view a, std::string_view b);
/// Whether `version` comes before `than` in that order.
bool is_older(std::string_view version, std::string_view than);

/// Whether a version is among those that a specifier set allows (PEP 440, "Version specifiers"):
/// `>=2.9,<3`; an empty set allows all, pre-releases too.
bool version_satisfies(std::string_view version, std::string_view specifiers);

/// A version as file names have it, written as PEP 440 does: `1.0.post1` of `1.0_1`.
std::string unescaped_version(std::string_view version);
/// The same version, however it is spelt: as PEP 440 writes it, or as file names do.
bool is_same_version(std::string_view a, std::string_view b);

/// The first number: `13` of `13.2`.
std::string major_of(std::string_view version);
/// The first `count` numbers: `13.2` of (`13.2.2`, 2).
std::string version_prefix(std::string_view version, int count);

/// Upstream part of a Debian version (deb-version(7)): `3.11.2` of `1:3.11.2-6+deb12u5`.
std::string_view upstream_version(std::string_view version);

}  // namespace mlenv
