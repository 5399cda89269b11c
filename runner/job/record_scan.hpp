#pragma once
// A look through a record as CBOR (RFC 8949) before it is read: the reader calls itself for what is
// nested, and makes far more of small items than they are bytes, so that a few megabytes of a
// stranger's could take all of the stack or of the memory.
#include <string_view>

namespace mlenv::job {

/// One item, all of whose lengths are said and lie within the bytes, at most 16 deep, of at most
/// 100,000 items, without tags: as every message of ours is.
bool is_plain_record(std::string_view bytes);

}  // namespace mlenv::job
