# SPDX-License-Identifier: BSD-2-Clause
"""Writes the rows of the bad input (bad.h) from the public headers: each function that the version script exports,
each of its parameters.

- A handle is NULL, one that was destroyed, one of another kind, and no address of memory at all.
- Any other pointer is NULL, unless the header allows that.
- A structure of attributes has a bad value in each field, or FIELDS says that any value will do.
- Numbers and names have the bad values of VALUES, or ANY says that each is good.
- STATES are right arguments at the wrong time.

What is in none of these is an error: a new function, parameter or field cannot be forgotten."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
HEADERS = ("types", "app", "process", "thread", "queue", "stream")
# Kinds of objects, each with a pointer to one of another kind.
KINDS = {"app": "process", "process": "app", "cmdq": "window", "window": "cmdq", "mkey": "window", "outbox": "uar",
         "uar": "outbox", "event_handler": "thread", "thread": "event_handler", "cq": "cmdq",
         "emu_db_to_cq_ctx": "cq", "msg_stream": "cq", "rq": "sq", "sq": "rmp", "rmp": "qp", "qp": "rq"}
NOT_MEMORY = "(void *)(uintptr_t)24"
# What a function gives that has failed, by its type; those of the second table by their name.
FAILED = {"flexio_status": "FLEXIO_STATUS_FAILED", "uint32_t": "UINT32_MAX", "flexio_uar_device_id": "UINT32_MAX",
          "size_t": "0", "uint64_t": "0", "enum flexio_qp_state": "FLEXIO_QP_STATE_ERR",
          "enum flexio_err_status": "FLEXIO_DEV_FATAL_ERROR", "enum flexio_log_lvl": "FLEXIO_LOG_LVL_ERR"}
FAILED_OF = {"flexio_cmdq_is_empty": "0", "flexio_err_handler_fd": "-1", "flexio_msg_stream_get_id": "-1"}
# NULL is allowed: what the function gives then; None: as with any good argument.
NULLS = {("flexio_process_destroy", "process"): "FLEXIO_STATUS_SUCCESS",
         ("flexio_device_mkey_destroy", "mkey"): "FLEXIO_STATUS_SUCCESS",
         ("flexio_err_status_get", "process"): "FLEXIO_DEV_NO_ERROR",
         ("flexio_process_create", "process_attr"): None, ("flexio_msg_stream_create", "ppthread"): None,
         ("flexio_log_dev_init", "ppthread"): None, ("flexio_cq_create", "ibv_ctx"): None,
         ("flexio_rq_create", "ibv_ctx"): None, ("flexio_sq_create", "ibv_ctx"): None,
         ("flexio_rmp_create", "ibv_ctx"): None, ("flexio_qp_create", "ibv_ctx"): None,
         ("flexio_qp_modify", "mask"): "FLEXIO_STATUS_SUCCESS",
         ("flexio_coredump_create", "outfile"): None, ("flexio_crash_data", "outfile"): None}
# Good arguments, by "function parameter", by the parameter's name or by its type.
GOOD = {
    "flexio_process_call host_func": "&count", "flexio_cmdq_task_add host_func": "&on_error",
    "flexio_process_error_handler_set error_handler": "&on_error",
    "flexio_func_get_register_info host_stub_func_addr": "&add", "host_stub_func_addr": "&bad_function",
    "flexio_func_get_register_info dev_func_name": "name_out", "flexio_func_get_register_info dev_unpack_func_name":
    "unpack_out", "dev_func_name": '"count"', "dev_unpack_func_name": '"count"', "flexio_func_pup_register argbuf_size": "8",
    "func_name_size": "sizeof(name_out)", "flexio_func_pup_register host_pack_func": "&bad_pack", "bin_size": "good.app_attr.app_bsize",
    "symbol_name": '"symbol_numbers"', "symbol_data": "(void *)bad_text",
    "outfile": '"/tmp/bad"', "buff_bsize": "64", "src_haddr": "bad_text", "dest_daddr": "good.buffer",
    "daddr": "good.buffer", "value": "0", "level": "FLEXIO_MSG_DEV_INFO", "lvl": "FLEXIO_LOG_LVL_ERR",
    "flexio_cq_modify_moderation max_count": "0", "flexio_cq_modify_moderation period": "0",
    "flexio_cq_modify_moderation mode": "0", "flexio_emu_db_to_cq_map ibv_ctx": "good.other_ctx",
    "flexio_emu_db_to_cq_map cq": "good.net_cq", "vhca_id": "EMULATED_VHCA", "queue_id": "2", "arg": "0", "user_arg": "0", "cq_num": "good.net_cqn", "out": "stdout",
    "ppthread": "NULL", "ibv_ctx": "good.ctx", "to_extend": "good.other_ctx", "pd": "good.pd",
    "process_attr": "&good.process_attr", "apps_list": "NULL",
    **{f"flexio_{queue}_create {name}": value for queue in ("rq", "sq", "rmp")
       for name, value in (("process", "good.net"), ("ibv_ctx", "good.other_ctx"))},
}
GOOD_ATTR = {"flexio_app_attr": "app_attr", "flexio_cmdq_attr": "cmdq_attr", "flexio_cq_attr": "cq_attr",
             "flexio_event_handler_attr": "event_handler_attr", "flexio_mkey_attr": "mkey_attr",
             "flexio_outbox_attr": "outbox_attr", "flexio_process_attr": "process_attr",
             "flexio_log_dev_attr": "stream_attr", "flexio_wq_attr": "wq_attr", "flexio_qp_attr": "qp_attr",
             "flexio_qp_attr_opt_param_mask": "qp_mask"}
# Bad numbers and names.
VALUES = {
    "flexio_log_lvl_set lvl": ("(enum flexio_log_lvl)-1", "(enum flexio_log_lvl)4"),
    "flexio_app_get_elf bin_size": ("0", "good.app_attr.app_bsize - 1"),
    "flexio_func_register dev_func_name": ('""', "bad_name"),
    "flexio_func_pup_register dev_func_name": ('""', "bad_name"),
    "flexio_func_pup_register dev_unpack_func_name": ('""', "bad_name"), "flexio_func_pup_register argbuf_size": ("2049", "SIZE_MAX"),
    "flexio_func_get_register_info host_stub_func_addr": ("&bad_function",),
    "flexio_func_pup_register host_stub_func_addr": ("&add",), "func_name_size": ("0", "2"),
    "host_func": ("&bad_function",), "error_handler": ("&bad_function",),
    "flexio_cmdq_task_add host_func": ("&bad_function", "&add"),
    "flexio_buf_dev_alloc buff_bsize": ("0", "(size_t)1 << 40", "SIZE_MAX"),
    "flexio_copy_from_host buff_bsize": ("0", "(size_t)1 << 40"),
    "flexio_host2dev_memcpy buff_bsize": ("(size_t)1 << 40", "SIZE_MAX"),
    "flexio_buf_dev_memset buff_bsize": ("(size_t)1 << 40", "SIZE_MAX"),
    "dest_daddr": ("0", "UINT64_MAX", "(uintptr_t)bad_text"), "flexio_buf_dev_free daddr": ("1", "good.buffer + 64"),
    "src_haddr": (NOT_MEMORY,), "flexio_msg_stream_level_set level": ("1", "6", "255"),
    "flexio_cq_modify_moderation period": ("4096", "65535"), "flexio_cq_modify_moderation mode": ("2", "65535"),
    "vhca_id": ("0", "EMULATED_VHCA - 1", "UINT32_MAX"), "queue_id": ("0", "64", "UINT32_MAX"),
    "outfile": ('"/nowhere/at/all"',), "cq_num": ("1 << 24", "0xfffffe", "UINT32_MAX"),
}
# Any value is good.
ANY = {"flexio_cq_modify_moderation max_count", "flexio_buf_dev_memset value", "flexio_cmdq_task_add arg",
       "flexio_event_handler_run user_arg"}
def memory(field):
    """Bad values of the memory of a queue."""
    host = f"a.{field}.memtype = FLEXIO_MEMTYPE_HOST"
    return {f"{field}.memtype": ["= (enum flexio_memtype)2", "= (enum flexio_memtype)-1"],
            f"{field}.daddr": ["= UINT64_MAX - 63", "= (uintptr_t)bad_text & ~(uintptr_t)63"],
            f"{field}.humem_offset": [f"= UINT64_MAX - 63; {host}"], f"{field}.umem_id": [f"= 12345; {host}"]}


NUMBER = ["= 1 << 24", "= UINT32_MAX"]  # of 24 bits
WQ = {"log_wq_stride": ["= 16", "= 255"], "log_wq_depth": ["= 16", "= 255"], "uar_id": NUMBER, "user_index": NUMBER,
      "pd": ["= good.pd"], "sq": [], "rq": [], **memory("wq_ring_qmem"), **memory("wq_dbr_qmem")}
QP_CREATE = {"transport_type": ["= 15", "= UINT32_MAX"], "uar_id": [*NUMBER, "= 1 << 21"], "user_index": NUMBER,
             "pd": ["= good.other_pd"], "log_sq_depth": ["= -1", "= 16"], "sq_cqn": [*NUMBER, "= 0xfffffe"],
             "log_rq_depth": ["= -1", "= 16"], "rq_type": ["= 9", "= -1"], "rq_cqn": [*NUMBER, "= 0xfffffe"],
             "rmpqn": ["= 0xfffffe; a.rq_type = FLEXIO_QP_QPC_RQ_TYPE_SRQ_RMP_XRC_SRQ_XRQ",
                       "= 1 << 24; a.rq_type = FLEXIO_QP_QPC_RQ_TYPE_SRQ_RMP_XRC_SRQ_XRQ"],
             **memory("qp_wq_buff_qmem"), **memory("qp_wq_dbr_qmem")}
QP_MODIFY = {"next_state": ["= FLEXIO_QP_STATE_RTS", "= (enum flexio_qp_state)9"], "remote_qp_num": NUMBER,
             "min_rnr_nak_timer": ["= 32", "= UINT32_MAX"], "path_mtu": ["= (enum flexio_qp_qpc_mtu)6"],
             "retry_count": ["= 8", "= 255"], "vhca_port_num": ["= 3", "= 255"], "next_rcv_psn": NUMBER,
             "next_send_psn": NUMBER, "log_rra_max": ["= 8"], "log_sra_max": ["= 8"]}


# One structure has what two functions need; of these any value will do.
FREE_ALWAYS = "qp_access_mask ops_flag no_sq fl dest_mac rgid_or_rip rlid gid_table_index udp_sport grh isolate_vl_tc"


def with_free(fields_known, others):
    """The fields that only the other function reads are free, too."""
    return {**{field: [] for field in (*FREE_ALWAYS.split(), *others)}, **fields_known}


# Bad values of fields, with what has to be there for that to matter; an empty list: any value is good.
FIELDS = {
    "flexio_process_attr": {"pd": ["= good.other_pd"], "en_pcc": ["= 1"]},
    "flexio_rq_create": WQ, "flexio_sq_create": {**WQ, "log_wq_stride": [], "uar_id": [*NUMBER, "= 1 << 21"],
                                                 "sq": [],
                                                 "wq_dbr_qmem.humem_offset": []},  # it has no record that is read
    "flexio_rmp_create": {**WQ, "rq": [".wq_type = FLEXIO_WQ_TYPE_CYCLIC"]},
    "flexio_qp_create": with_free(QP_CREATE, QP_MODIFY), "flexio_qp_modify": with_free(QP_MODIFY, QP_CREATE),
    "flexio_qp_attr_opt_param_mask": {"qp_access_mask": [], "min_rnr_nak_timer": []},
    "flexio_app_attr": {"app_name": ["= NULL", '= ""', "= bad_name"], "app_ptr": ["= NULL", "= bad_text"],
                        "app_bsize": ["= 0", "= 63"], "app_sig_sec_name": []},
    "flexio_cmdq_attr": {"workers": ["= 0", "= -1", "= 1025"], "batch_size": ["= 0", "= -1"],
                         "state": ["= (enum flexio_cmdq_state)2", "= (enum flexio_cmdq_state)-1"]},
    "flexio_event_handler_attr": {
        "host_stub_func": ["= NULL", "= &bad_function"], "continuable": [], "arg": [],
        "thread_local_storage_daddr": [], "affinity.type": ["= (enum flexio_affinity_type)3"],
        "affinity.id": ["= 254; a.affinity.type = FLEXIO_AFFINITY_STRICT",
                        "= UINT32_MAX; a.affinity.type = FLEXIO_AFFINITY_STRICT",
                        "= 77; a.affinity.type = FLEXIO_AFFINITY_GROUP"]},
    "flexio_cq_attr": {
        "log_cq_depth": ["= 23", "= 255"], "element_type": ["= 1", "= 3", "= 255"],
        "emulated_eqn": ["= 1 << 23; a.element_type = FLEXIO_CQ_ELEMENT_TYPE_EXT_EQ",
                         "= UINT32_MAX; a.element_type = FLEXIO_CQ_ELEMENT_TYPE_DPA_MSIX_EMULATED_CQ"],
        "thread": ["= NULL", "= good.freed.thread", "= (void *)good.event_handler", f"= {NOT_MEMORY}"],
        "uar_id": ["= 1 << 21", "= UINT32_MAX"], "uar_base_addr": ["= bad_text", f"= {NOT_MEMORY}"],
        "cqe_comp_type": ["= FLEXIO_CQE_COMP_BASIC; a.cc = true", "= (enum flexio_cqe_comp_type)3"],
        "cq_period_mode": ["= (enum flexio_cq_period_mode)2"], "cq_period": ["= 4096"], "cq_max_count": [],
        "no_arm": [], "cc": [], "overrun_ignore": [], "always_armed": [],
        "cq_ring_qmem.memtype": ["= (enum flexio_memtype)2", "= (enum flexio_memtype)-1"],
        "cq_ring_qmem.daddr": ["= 0", "= UINT64_MAX - 63", "= (uintptr_t)bad_text"],
        "cq_ring_qmem.humem_offset": ["= UINT64_MAX - 63; a.cq_ring_qmem.memtype = FLEXIO_MEMTYPE_HOST"],
        "cq_ring_qmem.umem_id": ["= 12345; a.cq_ring_qmem.memtype = FLEXIO_MEMTYPE_HOST"],
        "cq_dbr_daddr": ["= 0", "= UINT64_MAX - 7", "= (uintptr_t)bad_text & ~(uintptr_t)7"]},
    "flexio_mkey_attr": {"pd": ["= NULL"], "daddr": ["= 0", "= UINT64_MAX"],
                         "len": ["= 0", "= (size_t)1 << 40", "= SIZE_MAX"], "access": ["= 1 << 30", "= -1"]},
    "flexio_outbox_attr": {"uar": [], "en_pcc": ["= 1", "= UINT32_MAX"]},
    "flexio_log_dev_attr": {
        "uar": [], "data_bsize": ["= 0", "= 2047", "= 3000", "= SIZE_MAX", "= (size_t)1 << 27"],
        "sync_mode": ["= (flexio_msg_dev_sync_mode)4", "= (flexio_msg_dev_sync_mode)-1"], "stream_name": [],
        "level": ["= 6", "= 255"], "mgmt_affinity.type": ["= (enum flexio_affinity_type)3"],
        "mgmt_affinity.id": ["= 254; a.mgmt_affinity.type = FLEXIO_AFFINITY_STRICT"],
        "tracer_mode": ["= (enum flexio_tracer_transport)2; a.sync_mode = FLEXIO_LOG_DEV_SYNC_MODE_TRACER"],
        "tracer_msg_formats": ["= NULL; a.sync_mode = FLEXIO_LOG_DEV_SYNC_MODE_TRACER"]},
}
# Right arguments at the wrong time: what the line names, the call, and what it gives.
STATES = (
    ("flexio_event_handler_run", "event_handler", "(flexio_event_handler_run(good.event_handler, 1), "
     "flexio_event_handler_run(good.event_handler, 1))", "FAILED"),
    ("flexio_event_handler_destroy", "event_handler", "flexio_event_handler_destroy(good.event_handler)", "FAILED"),
    ("flexio_uar_destroy", "uar", "flexio_uar_destroy(flexio_process_get_uar(good.process))", "FAILED"),
    ("flexio_msg_stream_level_set", "stream", "level_of_default()", "FAILED"),
    ("flexio_log_dev_init", "there can be", "flexio_log_dev_init(good.process, &good.stream_attr, stdout, NULL)", "FAILED"),
    ("flexio_log_dev_flush", "process", "flexio_log_dev_flush(good.failed)", "FAILED"),
    ("flexio_log_dev_destroy", "process", "flexio_log_dev_destroy(good.failed)", "FAILED"),
    ("flexio_process_error_handler_set", "error_handler", "error_handler_late()", "FAILED"),
    ("flexio_process_call", "ended by an error", "flexio_process_call(good.failed, &count, &value, (uint64_t)1)",
     "FATAL_ERR"),
    ("flexio_process_call", "process", "flexio_process_call(good.finished, &nothing, &value)", "FAILED"),
    ("flexio_cmdq_task_add", "ended by an error", "flexio_cmdq_task_add(good.failed_cmdq, &on_error, 0)", "FATAL_ERR"),
)
STATE_HELPERS = r"""
static flexio_status level_of_default(void)
{
	struct flexio_msg_stream *s;
	struct flexio_process *p = host_process();
	flexio_status status;

	OK(flexio_msg_stream_create(p, &good.stream_attr, stdout, NULL, &s));
	status = flexio_msg_stream_level_set(s, FLEXIO_MSG_DEV_ERROR);
	OK(flexio_process_destroy(p));
	return status;
}

static flexio_status error_handler_late(void)
{
	struct flexio_process *p = host_process();
	flexio_status status;

	CHECK(RESULT(p, &nothing) == 17);
	status = flexio_process_error_handler_set(p, &on_error);
	OK(flexio_process_destroy(p));
	return status;
}
"""


class Unknown(Exception):
    """The headers have something that no table here knows."""


def header_text():
    text = ""
    for name in HEADERS:
        text += (ROOT / f"include/libflexio/flexio_{name}.h").read_text()
    # Without comments, and what is of later generations only.
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"#if FLEXIO_VER_USED.*?(#else|#endif)", "", text, flags=re.S)
    return text


def exported():
    return sorted(re.findall(r"\b(flexio_\w+);", (ROOT / "src/flexio/libflexio.map").read_text()))


def functions(text):
    """{name: (type of the result, [(type, name of the parameter)])}"""
    found = {}
    for result, name, parameters in re.findall(r"^([\w ]+[ *])(flexio_\w+)\(([^;{}]*)\);", text, re.M | re.S):
        found[name] = (" ".join(result.split()), [parameter(p) for p in parameters.split(",") if p.strip() != "..."])
    return found


def parameter(text):
    kind, name = re.fullmatch(r"(.*[ *])(\w+)", " ".join(text.split())).groups()
    return kind.strip(), name


def fields(text, struct):
    body = re.search(r"struct %s \{(.*?)\n\}" % struct, text, re.S)
    if not body:
        raise Unknown(f"struct {struct}")
    for line in re.sub(r"union \{|\};?", "", body[1]).split(";"):
        if not line.strip():
            continue
        kind, name = parameter(line)
        inner = re.fullmatch(r"struct (flexio_qmem|flexio_affinity)", kind)
        if inner:
            yield from (f"{name}.{field}" for field in fields(text, inner[1]))
        else:
            yield name


def handle_kind(kind):
    match = re.fullmatch(r"(?:const )?struct flexio_(\w+) \*", kind)
    return match[1] if match and match[1] in KINDS else None


def attr_of(kind):
    kind = kind.replace("flexio_msg_stream_attr_t", "struct flexio_log_dev_attr")
    match = re.fullmatch(r"(?:const )?struct (flexio_\w+_attr(?:_opt_param_mask)?) \*", kind)
    return match[1] if match else None


class Writer:
    def __init__(self):
        self.text = header_text()
        self.functions = functions(self.text)
        self.out = []
        self.rows = 0

    # ---- one row ----

    def good(self, function, kind, name):
        for key in (f"{function} {name}", name):
            if key in GOOD and not (key == name and handle_kind(kind)):
                return GOOD[key]
        if handle_kind(kind):
            return f"good.{handle_kind(kind)}"
        if attr_of(kind):
            return f"&good.{GOOD_ATTR[attr_of(kind)]}"
        if kind.endswith("*") and not kind.startswith("const"):
            return None  # an output
        raise Unknown(f"a good value of {function}, {name} ({kind})")

    @staticmethod
    def is_cleared(kind, name):
        """After a failure it is NULL, or 0."""
        return bool(re.fullmatch(r"struct flexio_\w+ \*+\*|flexio_func_t \*\*", kind)) or name in (
            "dest_daddr_p", "num_apps", "sym_data_size")

    def row(self, function, spoiled, value, how, before="", expected=None, words=None):
        """A call with good arguments but for one."""
        result, parameters = self.functions[function]
        declared, arguments, after = "", [], []
        for kind, name in parameters:
            good = self.good(function, kind, name)
            if name == spoiled:
                arguments.append(value)
            elif good is not None:
                arguments.append(good)
            else:
                local = kind.removesuffix("*").strip()
                separator = "" if local.endswith("*") else " "
                declared += f"\t\t{local}{separator}{name};\n\t\tmemset(&{name}, POISON, sizeof({name}));\n"
                arguments.append(f"&{name}")
                if expected is None or "SUCCESS" not in expected:
                    after.append(f"!{name}" if self.is_cleared(kind, name) else f"is_poison(&{name}, sizeof({name}))")
        if function == "flexio_process_call":
            arguments.append("(uint64_t)1")
        wanted = expected or FAILED_OF.get(function) or FAILED.get(result) or "NULL"
        words = f'"{words or spoiled}"' if expected is None else "NULL"
        names = function == "flexio_func_get_register_info"
        local = "\t\tstatic char name_out[300], unpack_out[300];\n" if names else ""
        self.out.append(f"""	{{
{local}{declared}		bool as_expected;
		{before}
		row_begin("{function}");
		as_expected = {function}({", ".join(arguments)}) == {wanted};
		row_end("{function}", {words}, "{how}", as_expected{"".join(" && " + a for a in after)});
	}}""")
        self.rows += 1

    # ---- the rows of a parameter ----

    def pointer_rows(self, function, kind, name):
        key = (function, name)
        if key not in NULLS:
            self.row(function, name, "NULL", "NULL")
        elif NULLS[key]:
            self.row(function, name, "NULL", "NULL", expected=NULLS[key])
        handle = handle_kind(kind)
        if handle:
            self.row(function, name, f"good.freed.{handle}", "destroyed")
            self.row(function, name, f"(void *)good.{KINDS[handle]}", "of another kind")
            self.row(function, name, NOT_MEMORY, "no memory")
        attr = attr_of(kind)
        if attr:
            self.field_rows(function, name, attr)

    def field_rows(self, function, name, attr):
        known = FIELDS.get(attr) or FIELDS.get(function, {})
        for field in fields(self.text, attr):
            if field not in known:
                raise Unknown(f"field {field} of struct {attr}")
            for change in known[field]:
                shown = change.replace('"', "'")
                before = f"struct {attr} a = good.{GOOD_ATTR[attr]}; a.{field} {change};"
                self.row(function, name, "&a", f"{field} {shown}", before, words=field.split(".")[0])

    def value_rows(self, function, kind, name):
        for key in (f"{function} {name}", name):
            if key in VALUES:
                for value in VALUES[key]:
                    self.row(function, name, value, value.replace('"', "'"))
                return
        pointer = kind.endswith("*")
        if not pointer and f"{function} {name}" not in ANY:
            raise Unknown(f"bad values of {function}, {name} ({kind})")

    def function_rows(self, function):
        if function not in self.functions:
            raise Unknown(f"the prototype of {function}")
        before = self.rows
        for kind, name in self.functions[function][1]:
            if kind.endswith("*"):
                self.pointer_rows(function, kind, name)
            self.value_rows(function, kind, name)
        if self.rows == before:
            raise Unknown(f"a row of {function}")

    def source(self):
        parts = []
        for function in exported():
            self.out = []
            self.function_rows(function)
            parts.append(f"static void rows_{function}(void)\n{{\n" + "\n".join(self.out) + "\n}\n")
        states = "\n".join(f"""	row_begin("{function}");
	row_end("{function}", "{words}", "at the wrong time", {call} == FLEXIO_STATUS_{status});"""
                           for function, words, call, status in STATES)
        self.rows += len(STATES)
        calls = "\n".join(f"\trows_{function}();" for function in exported())
        return (f'#include "bad.h"\n{STATE_HELPERS}\n' + "\n".join(parts) +
                f"\nvoid rows_run(void)\n{{\n\tuint64_t value;\n\n{calls}\n{states}\n}}\n")


def write(path):
    """The number of functions and of rows."""
    writer = Writer()
    path.write_text(writer.source())
    return len(exported()), writer.rows
