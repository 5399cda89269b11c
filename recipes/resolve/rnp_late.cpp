// What is called of librnp.
#include <rnp/rnp.h>

#include "base/late_library.hpp"

namespace {
mlenv::LateLibrary rnp_library{MLENV_LATE_RNP};
}  // namespace

MLENV_LATE_1(rnp_library, rnp_buffer_destroy)
MLENV_LATE_3(rnp_library, rnp_ffi_create)
MLENV_LATE_1(rnp_library, rnp_ffi_destroy)
MLENV_LATE_2(rnp_library, rnp_ffi_set_log_fd)
MLENV_LATE_2(rnp_library, rnp_get_public_key_count)
MLENV_LATE_4(rnp_library, rnp_import_keys)
MLENV_LATE_1(rnp_library, rnp_input_destroy)
MLENV_LATE_4(rnp_library, rnp_input_from_memory)
MLENV_LATE_1(rnp_library, rnp_key_handle_destroy)
MLENV_LATE_2(rnp_library, rnp_key_valid_till64)
MLENV_LATE_4(rnp_library, rnp_op_verify_create)
MLENV_LATE_1(rnp_library, rnp_op_verify_destroy)
MLENV_LATE_1(rnp_library, rnp_op_verify_execute)
MLENV_LATE_3(rnp_library, rnp_op_verify_get_signature_at)
MLENV_LATE_2(rnp_library, rnp_op_verify_get_signature_count)
MLENV_LATE_2(rnp_library, rnp_op_verify_signature_get_handle)
MLENV_LATE_2(rnp_library, rnp_op_verify_signature_get_key)
MLENV_LATE_1(rnp_library, rnp_op_verify_signature_get_status)
MLENV_LATE_1(rnp_library, rnp_output_destroy)
MLENV_LATE_4(rnp_library, rnp_output_memory_get_buf)
MLENV_LATE_2(rnp_library, rnp_output_to_memory)
MLENV_LATE_1(rnp_library, rnp_result_to_string)
MLENV_LATE_2(rnp_library, rnp_signature_get_keyid)
MLENV_LATE_1(rnp_library, rnp_signature_handle_destroy)
