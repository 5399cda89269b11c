#pragma once
// What libcurl says of a proxy whose address it cannot read: all of it, user and password too.
#include <string>

namespace mlenv {

/// With `***` in place of that address. For the words of whatever was built with libcurl.
std::string without_proxy(std::string text);

}  // namespace mlenv
