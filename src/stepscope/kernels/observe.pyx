"""Sees calls, returns and variables of a program without being seen: no Python frame, no other object in its place.

- `observe_calls` changes how an object is called, and not the object: CPython calls through a pointer that functions,
  jitted functions and the like keep in themselves (`vectorcall`).  Identity, class, attributes, pickles, source and
  what compilers make of it stay those of the object, because it is that object.
- `StandIn` is for what has no such pointer, or is called past it.  It hangs where the original hung, in a class or
  a module, and answers everything but calls as the original does.
- `when_returned` calls back when a running function has returned.
- `read_locals` reads the variables of a frame.  `frame.f_locals` would write into the dict that the program has from
  `locals()`, before Python 3.13.

An observer is asked before a call and told after it.  The call itself is made from C, so that no traceback, no warning
and no depth of the stack shows an observer.  What a function for a signal raises in one is the program's.  Only the
stable interface of CPython is used, and three facts beside it, each said where it is used.
"""

import sys
from _signal import NSIG, getsignal  # those of `signal` are Python code, which a signal may end, too
from functools import partial
from types import CellType, FunctionType, MethodType

cdef extern from *:
    """
    #include <string.h>

    /* Beside the stable interface: the offset of the pointer in objects of a type.  This part of a type is the same
       from CPython 3.8 to 3.14. */
    typedef struct {
        PyVarObject ob_base;
        const char *tp_name;
        Py_ssize_t tp_basicsize, tp_itemsize;
        destructor tp_dealloc;
        Py_ssize_t tp_vectorcall_offset;
    } observe_type;

    #ifndef Py_TPFLAGS_HAVE_VECTORCALL
    #define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
    #endif

    typedef PyObject *(*observe_call)(PyObject *, PyObject *const *, size_t, PyObject *);

    /* From Python 3.12 on, the interpreter calls a function past its pointer unless this has set it. */
    #if defined(__GNUC__) && !defined(_WIN32)
    extern void PyFunction_SetVectorcall(PyObject *, observe_call) __attribute__((weak));
    #define observe_has_setter() (PyFunction_SetVectorcall != NULL)
    #else
    static void PyFunction_SetVectorcall(PyObject *function, observe_call call) {}
    #define observe_has_setter() 0
    #endif

    /* An entry of both tables: (before, after, failed, address of the call itself, what is observed). */
    static PyObject *observe_objects, *observe_types;

    static observe_call *observe_pointer(PyObject *object) {
        observe_type *type = (observe_type *)Py_TYPE(object);
        if (!(PyType_GetFlags(Py_TYPE(object)) & Py_TPFLAGS_HAVE_VECTORCALL) || type->tp_vectorcall_offset <= 0)
            return NULL;
        return (observe_call *)((char *)object + type->tp_vectorcall_offset);
    }

    static PyObject *observe_find(PyObject *table, void *address) {
        PyObject *key = PyLong_FromVoidPtr(address), *entry = NULL;
        if (key != NULL) {
            entry = PyDict_GetItemWithError(table, key);
            Py_XINCREF(entry);
            Py_DECREF(key);
        }
        return entry;
    }

    /* What has a compiler of bytecode leave the code alone that observers run, such as PyTorch's `set_eval_frame`: it
       takes what compiles, or None, and returns what was there. */
    static PyObject *observe_compiler_switch;

    static void observe_set_switch(PyObject *given) {
        Py_INCREF(given);  /* for as long as the process lives */
        observe_compiler_switch = given;
    }

    static PyObject *observe_switch(PyObject *to) {
        PyObject *before;
        if (observe_compiler_switch == NULL || to == NULL)
            return NULL;
        before = PyObject_CallFunctionObjArgs(observe_compiler_switch, to, NULL);
        if (before == NULL)
            PyErr_Clear();
        return before;
    }

    /* The limited API leaves these out; every CPython from 3.11 on exports them. */
    PyAPI_FUNC(void) PyThreadState_EnterTracing(PyThreadState *);
    PyAPI_FUNC(void) PyThreadState_LeaveTracing(PyThreadState *);

    /* Calls an observer, of which tracers and profilers of the program see nothing; an exception that is under way stays
       so. */
    static PyObject *observe_tell(PyObject *observer, PyObject *first, PyObject *second) {
        PyObject *compiler = observe_switch(Py_None), *answer, *type, *value, *trace;
        PyThreadState *thread = PyThreadState_Get();
        PyThreadState_EnterTracing(thread);
        answer = PyObject_CallFunctionObjArgs(observer, first, second, NULL);
        PyThreadState_LeaveTracing(thread);
        if (compiler != NULL) {
            PyErr_Fetch(&type, &value, &trace);
            Py_XDECREF(observe_switch(compiler));
            PyErr_Restore(type, value, trace);
            Py_DECREF(compiler);
        }
        return answer;
    }

    static PyObject *observe_claim;

    /* 1 if the exception that is set is the program's, as it is to see it then.  Any other is a mistake of an observer:
       it is told, and none is set any more. */
    static int observe_passes(PyObject *observer) {
        PyObject *type, *value, *trace, *claimed;
        PyErr_Fetch(&type, &value, &trace);
        PyErr_NormalizeException(&type, &value, &trace);
        if (trace != NULL)
            PyException_SetTraceback(value, trace);
        claimed = PyObject_CallFunctionObjArgs(observe_claim, value, NULL);
        PyErr_Clear();
        if (claimed == NULL || claimed == Py_None) {
            Py_XDECREF(claimed);
            PyErr_Restore(type, value, trace);
            if (PyErr_ExceptionMatches(PyExc_RecursionError))  /* the program has left no room, and goes on */
                PyErr_Clear();
            else
                PyErr_WriteUnraisable(observer);
            return 0;
        }
        PyErr_Restore(type, claimed, PyException_GetTraceback(claimed));
        Py_DECREF(value);
        Py_XDECREF(trace);
        return 1;
    }

    static void observe_note_failure(PyObject *failed, PyObject *state) {
        PyObject *type, *value, *trace, *answer;
        PyErr_Fetch(&type, &value, &trace);
        answer = observe_tell(failed, state, NULL);
        if (answer != NULL || !observe_passes(failed)) {
            Py_XDECREF(answer);
            PyErr_Restore(type, value, trace);
            return;
        }
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    }

    /* What came of a call goes to the observer, and on to the caller. */
    static PyObject *observe_end(PyObject *entry, PyObject *state, PyObject *result) {
        PyObject *answer;
        if (state == NULL || state == Py_None)
            return result;
        if (result == NULL) {
            observe_note_failure(PyTuple_GetItem(entry, 2), state);
            return NULL;
        }
        answer = observe_tell(PyTuple_GetItem(entry, 1), state, result);
        if (answer == NULL && observe_passes(PyTuple_GetItem(entry, 1))) {
            Py_DECREF(result);
            return NULL;
        }
        Py_XDECREF(answer);
        return result;
    }

    /* NULL after a mistake of ours, too: then no exception is set, and the call is made. */
    static PyObject *observe_begin(PyObject *entry, PyObject *callable, PyObject *args) {
        PyObject *state = observe_tell(PyTuple_GetItem(entry, 0), callable, args);
        if (state == NULL)
            observe_passes(callable);
        return state;
    }

    static PyObject *observe_run(PyObject *entry, PyObject *callable, PyObject *const *args, size_t flags,
                                 PyObject *names) {
        observe_call call = (observe_call)PyLong_AsVoidPtr(PyTuple_GetItem(entry, 3));
        Py_ssize_t count = (Py_ssize_t)(flags & ~((size_t)1 << (8 * sizeof(size_t) - 1))), at;
        PyObject *result, *state, *positional = PyTuple_New(count);
        if (positional == NULL) {
            PyErr_Clear();
            return call(callable, args, flags, names);
        }
        for (at = 0; at < count; at++) {
            Py_INCREF(args[at]);
            PyTuple_SetItem(positional, at, args[at]);
        }
        state = observe_begin(entry, callable, positional);
        Py_DECREF(positional);  /* so that nothing of the program lives longer */
        if (state == NULL && PyErr_Occurred())
            return NULL;
        result = observe_end(entry, state, call(callable, args, flags, names));
        Py_XDECREF(state);
        return result;
    }

    static PyObject *observe_object(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names) {
        PyObject *result, *entry = observe_find(observe_objects, callable);
        if (entry == NULL) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_SystemError, "the call of an observed object is lost");
            return NULL;
        }
        result = observe_run(entry, callable, args, flags, names);
        Py_DECREF(entry);
        return result;
    }

    static PyObject *observe_member(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names) {
        PyObject *result, *entry = observe_find(observe_types, Py_TYPE(callable));
        if (entry == NULL) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_SystemError, "the call of an observed object is lost");
            return NULL;
        }
        if (PyTuple_GetItem(entry, 0) == Py_None)
            result = ((observe_call)PyLong_AsVoidPtr(PyTuple_GetItem(entry, 3)))(callable, args, flags, names);
        else
            result = observe_run(entry, callable, args, flags, names);
        Py_DECREF(entry);
        return result;
    }

    static PyObject *observe_diverted(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names) {
        Py_ssize_t count = (Py_ssize_t)(flags & ~((size_t)1 << (8 * sizeof(size_t) - 1))), at;
        Py_ssize_t named = names == NULL ? 0 : PyTuple_Size(names);
        PyObject *entry = observe_find(observe_objects, callable), *positional, *words = NULL, *result = NULL;
        if (entry == NULL)
            return NULL;
        positional = PyTuple_New(count);
        if (named > 0)
            words = PyDict_New();
        if (positional == NULL || (named > 0 && words == NULL))
            goto end;
        for (at = 0; at < count; at++) {
            Py_INCREF(args[at]);
            PyTuple_SetItem(positional, at, args[at]);
        }
        for (at = 0; at < named; at++)
            if (PyDict_SetItem(words, PyTuple_GetItem(names, at), args[count + at]) < 0)
                goto end;
        result = PyObject_Call(PyTuple_GetItem(entry, 0), positional, words);
    end:
        Py_XDECREF(positional);
        Py_XDECREF(words);
        Py_DECREF(entry);
        return result;
    }

    static void *observe_divert(PyObject *object, void *back) {
        observe_call *pointer = observe_pointer(object), before;
        if (pointer == NULL)
            return NULL;
        before = *pointer;
        if (back != NULL ? before != observe_diverted : before == observe_diverted || before == observe_object)
            return NULL;
        *pointer = back != NULL ? (observe_call)back : observe_diverted;
        return (void *)before;
    }

    /* Calls an object past what its calls were diverted to. */
    static PyObject *observe_call_through(PyObject *object, void *call, PyObject *args, PyObject *named) {
        Py_ssize_t count = PyTuple_Size(args), words = named == NULL ? 0 : PyDict_Size(named), at;
        PyObject **stack = PyMem_Malloc((size_t)(count + words + 1) * sizeof(PyObject *)), *names = NULL, *result;
        if (stack == NULL)
            return PyErr_NoMemory();
        for (at = 0; at < count; at++)
            stack[at] = PyTuple_GetItem(args, at);
        if (words > 0) {
            PyObject *key, *value;
            Py_ssize_t place = 0;
            names = PyTuple_New(words);
            if (names == NULL) {
                PyMem_Free(stack);
                return NULL;
            }
            for (at = 0; PyDict_Next(named, &place, &key, &value); at++) {
                Py_INCREF(key);
                PyTuple_SetItem(names, at, key);
                stack[count + at] = value;
            }
        }
        result = ((observe_call)call)(object, stack, (size_t)count, names);
        Py_XDECREF(names);
        PyMem_Free(stack);
        return result;
    }

    /* What `sys.getswitchinterval` answers while another interval is set than the program's: that of the program. */
    static observe_call interval_read;
    static double interval_set, interval_of_program;

    static PyObject *interval_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names) {
        PyObject *value = interval_read(callable, args, flags, names);
        double difference = value == NULL ? 1 : PyFloat_AsDouble(value) - interval_set;
        if (difference < -5e-7 || difference > 5e-7)  /* wrong arguments, or the program has set it meanwhile */
            return value;
        Py_DECREF(value);
        return PyFloat_FromDouble(interval_of_program);
    }

    static int interval_hide(PyObject *reader, double set, double of_program) {
        observe_call *pointer = observe_pointer(reader);
        if (pointer == NULL)
            return 0;
        if (*pointer != interval_call) {
            interval_read = *pointer;
            *pointer = interval_call;
        }
        interval_set = set;
        interval_of_program = of_program;
        return 1;
    }

    static void interval_show(PyObject *reader) {
        observe_call *pointer = observe_pointer(reader);
        if (pointer != NULL && *pointer == interval_call)
            *pointer = interval_read;
    }

    static PyObject *interval_now(PyObject *reader) {
        observe_call *pointer = observe_pointer(reader);
        return pointer == NULL || *pointer != interval_call ? PyObject_CallFunctionObjArgs(reader, NULL)
                                                            : interval_read(reader, NULL, 0, NULL);
    }

    static int observe_set(PyObject *object, int by_type) {
        observe_call *pointer = observe_pointer(object), call = by_type ? observe_member : observe_object;
        if (pointer == NULL)
            return 0;
        *pointer = call;
        return 1;
    }

    static void *observe_get(PyObject *object) {
        observe_call *pointer = observe_pointer(object);
        return pointer == NULL || *pointer == observe_member || *pointer == observe_object ? NULL : (void *)*pointer;
    }

    static int observe_put_back(PyObject *object, void *call) {
        observe_call *pointer = observe_pointer(object);
        if (pointer == NULL || *pointer != observe_object)
            return 0;
        *pointer = (observe_call)call;
        return 1;
    }

    static void observe_set_function(PyObject *function, void *call) {
        PyFunction_SetVectorcall(function, call == NULL ? observe_object : (observe_call)call);
    }

    /* -- a stand-in ---------------------------------------------------------------------------------------------- */

    typedef struct {
        PyObject_HEAD
        PyObject *original, *entry, *around;
    } observe_stand_in;

    static PyObject *observe_method_type;

    static PyObject *stand_in_call(PyObject *self, PyObject *args, PyObject *named) {
        observe_stand_in *this = (observe_stand_in *)self;
        PyObject *original = this->original, *entry = this->entry, *around = this->around, *result, *state;
        if (around != Py_None) {
            Py_ssize_t count = PyTuple_Size(args), at;
            PyObject *all = PyTuple_New(count + 1);
            if (all == NULL)
                return NULL;
            Py_INCREF(original);
            PyTuple_SetItem(all, 0, original);
            for (at = 0; at < count; at++) {
                PyObject *each = PyTuple_GetItem(args, at);
                Py_INCREF(each);
                PyTuple_SetItem(all, at + 1, each);
            }
            Py_INCREF(around);
            result = PyObject_Call(around, all, named);
            Py_DECREF(around);
            Py_DECREF(all);
            return result;
        }
        Py_INCREF(original);
        Py_INCREF(entry);
        state = observe_begin(entry, original, args);
        result = state == NULL && PyErr_Occurred() ? NULL
                                                   : observe_end(entry, state, PyObject_Call(original, args, named));
        Py_XDECREF(state);
        Py_DECREF(entry);
        Py_DECREF(original);
        return result;
    }

    static PyObject *stand_in_get(PyObject *self, PyObject *object, PyObject *type) {
        if (object == NULL || object == Py_None) {
            Py_INCREF(self);
            return self;
        }
        return PyObject_CallFunctionObjArgs(observe_method_type, self, object, NULL);
    }

    static PyObject *stand_in_getattr(PyObject *self, PyObject *name) {
        const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
        if (text == NULL)
            return NULL;
        if (!strcmp(text, "__reduce_ex__") || !strcmp(text, "__reduce__"))
            return PyObject_GenericGetAttr(self, name);
        return PyObject_GetAttr(((observe_stand_in *)self)->original, name);
    }

    static int stand_in_setattr(PyObject *self, PyObject *name, PyObject *value) {
        return PyObject_SetAttr(((observe_stand_in *)self)->original, name, value);
    }

    static PyObject *stand_in_repr(PyObject *self) {
        return PyObject_Repr(((observe_stand_in *)self)->original);
    }

    static Py_hash_t stand_in_hash(PyObject *self) {
        return PyObject_Hash(((observe_stand_in *)self)->original);
    }

    static PyObject *stand_in_compare(PyObject *self, PyObject *other, int how) {
        if (Py_TYPE(other) == Py_TYPE(self))
            other = ((observe_stand_in *)other)->original;
        return PyObject_RichCompare(((observe_stand_in *)self)->original, other, how);
    }

    /* By name, as functions are pickled: there the stand-in hangs. */
    static PyObject *stand_in_reduce(PyObject *self, PyObject *ignored) {
        return PyObject_GetAttrString(((observe_stand_in *)self)->original, "__qualname__");
    }

    static int stand_in_traverse(PyObject *self, visitproc visit, void *arg) {
        observe_stand_in *this = (observe_stand_in *)self;
        Py_VISIT(Py_TYPE(self));
        Py_VISIT(this->original);
        Py_VISIT(this->entry);
        Py_VISIT(this->around);
        return 0;
    }

    static int stand_in_clear(PyObject *self) {
        return 0;  /* it hangs in a module or a class, which may still call it while the interpreter ends */
    }

    static void stand_in_dealloc(PyObject *self) {
        observe_stand_in *this = (observe_stand_in *)self;
        PyTypeObject *type = Py_TYPE(self);
        freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
        PyObject_GC_UnTrack(self);
        Py_CLEAR(this->original);
        Py_CLEAR(this->entry);
        Py_CLEAR(this->around);
        release(self);
        Py_DECREF(type);
    }

    static PyMethodDef stand_in_methods[] = {
        {"__reduce__", stand_in_reduce, METH_NOARGS, NULL},
        {"__reduce_ex__", stand_in_reduce, METH_O, NULL},
        {NULL, NULL, 0, NULL}
    };

    static PyType_Slot stand_in_slots[] = {
        {Py_tp_call, stand_in_call},
        {Py_tp_descr_get, stand_in_get},
        {Py_tp_getattro, stand_in_getattr},
        {Py_tp_setattro, stand_in_setattr},
        {Py_tp_repr, stand_in_repr},
        {Py_tp_hash, stand_in_hash},
        {Py_tp_richcompare, stand_in_compare},
        {Py_tp_traverse, stand_in_traverse},
        {Py_tp_clear, stand_in_clear},
        {Py_tp_dealloc, stand_in_dealloc},
        {Py_tp_methods, stand_in_methods},
        {0, NULL}
    };

    static PyType_Spec stand_in_spec = {
        "stepscope.kernels.observe.StandIn", sizeof(observe_stand_in), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, stand_in_slots
    };

    static PyObject *observe_make_stand_in(PyObject *type, PyObject *original, PyObject *entry, PyObject *around) {
        allocfunc make = (allocfunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
        observe_stand_in *made = (observe_stand_in *)make((PyTypeObject *)type, 0);
        if (made == NULL)
            return NULL;
        Py_INCREF(original);
        Py_INCREF(entry);
        Py_INCREF(around);
        made->original = original;
        made->entry = entry;
        made->around = around;
        return (PyObject *)made;
    }

    /* -- the end of a function that runs -------------------------------------------------------------------------- */

    typedef struct {
        PyObject_HEAD
        PyObject *callback;
        unsigned long thread;
    } observe_token;

    static int observe_raise_later(void *error) {
        PyErr_SetObject((PyObject *)Py_TYPE((PyObject *)error), error);
        Py_DECREF((PyObject *)error);
        return -1;
    }

    static void token_dealloc(PyObject *self) {
        observe_token *this = (observe_token *)self;
        PyTypeObject *kind = Py_TYPE(self);
        freefunc release = (freefunc)PyType_GetSlot(kind, Py_tp_free);
        PyObject *type, *value, *trace, *callback = this->callback;
        this->callback = NULL;
        PyErr_Fetch(&type, &value, &trace);
        /* Whoever held the frame longer than the function ran may let it go on any thread. */
        if (callback != NULL && this->thread == PyThread_get_thread_ident()) {
            PyObject *answer = observe_tell(callback, NULL, NULL), *kind_of_error, *error, *trace_of_error;
            if (answer == NULL && observe_passes(callback)) {
                /* No exception passes from here: it is raised once the function has returned.  Not by the number of this
                   thread: until 3.12 a thread that it has started has the same at first. */
                PyErr_Fetch(&kind_of_error, &error, &trace_of_error);
                if (Py_AddPendingCall(observe_raise_later, error) != 0)
                    Py_DECREF(error);
                Py_XDECREF(kind_of_error);
                Py_XDECREF(trace_of_error);
            }
            Py_XDECREF(answer);
        }
        Py_XDECREF(callback);
        PyErr_Restore(type, value, trace);
        release(self);
        Py_DECREF(kind);
    }

    static PyType_Slot token_slots[] = {{Py_tp_dealloc, token_dealloc}, {0, NULL}};

    static PyType_Spec token_spec = {
        "stepscope.kernels.observe.Token", sizeof(observe_token), 0, Py_TPFLAGS_DEFAULT, token_slots
    };

    static PyObject *observe_make_token(PyObject *type, PyObject *callback) {
        allocfunc make = (allocfunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
        observe_token *made = (observe_token *)make((PyTypeObject *)type, 0);
        if (made == NULL)
            return NULL;
        Py_INCREF(callback);
        made->callback = callback;
        made->thread = PyThread_get_thread_ident();
        return (PyObject *)made;
    }

    static PyObject *builtin_call(PyObject *call, PyObject *argument) {
        PyObject *answer = observe_tell(call, argument, NULL);
        if (answer == NULL && !observe_passes(call)) {
            answer = Py_None;
            Py_INCREF(answer);
        }
        return answer;
    }

    static void observe_set_claim(PyObject *claim) {
        Py_INCREF(claim);  /* for as long as the process lives */
        observe_claim = claim;
    }

    static PyMethodDef builtin_method = {"observed", builtin_call, METH_O, NULL};

    static PyObject *observe_make_builtin(PyObject *call) {
        return PyCFunction_NewEx(&builtin_method, call, NULL);
    }

    /* -- variables ------------------------------------------------------------------------------------------------ */

    /* Beside the stable interface: where CPython 3.11 keeps the variables of a frame. */
    typedef struct {
        PyObject *function, *globals, *builtins, *locals, *code, *object;
        void *previous, *instruction;
        int top;
        char is_entry, owner;
        PyObject *values[1];
    } observe_frame_data;

    typedef struct {
        PyObject_HEAD
        PyObject *back;
        observe_frame_data *data;
    } observe_frame;

    static PyObject *observe_value(PyObject *frame, Py_ssize_t at) {
        PyObject *value = ((observe_frame *)frame)->data->values[at];
        if (value == NULL)
            value = Py_None;
        Py_INCREF(value);
        return value;
    }

    static int observe_has_value(PyObject *frame, Py_ssize_t at) {
        return ((observe_frame *)frame)->data->values[at] != NULL;
    }

    /* Beside the stable interface of 3.11, and part of Python from 3.12 on. */
    #if defined(__GNUC__) && !defined(_WIN32)
    extern PyObject *PyFrame_GetVar(PyObject *, PyObject *) __attribute__((weak));
    static int observe_has_getter(void) { return PyFrame_GetVar != NULL; }
    static PyObject *observe_get_variable(PyObject *frame, PyObject *name) {
        PyObject *value = PyFrame_GetVar(frame, name);
        if (value == NULL && PyErr_ExceptionMatches(PyExc_NameError))
            PyErr_Clear();
        return value;
    }
    #else
    static int observe_has_getter(void) { return 0; }
    static PyObject *observe_get_variable(PyObject *frame, PyObject *name) { return NULL; }
    #endif
    """
    object PyType_FromSpec(void *spec)
    void *stand_in_spec
    void *token_spec
    PyObject *observe_objects
    PyObject *observe_types
    PyObject *observe_method_type
    int observe_has_setter()
    void *observe_get(object callable)
    int observe_set(object callable, int by_type)
    int observe_put_back(object callable, void *call)
    void observe_set_function(object function, void *call)
    object observe_make_stand_in(object kind, object original, object entry, object around)
    object observe_make_token(object kind, object callback)
    object observe_make_builtin(object call)
    void *observe_divert(object target, void *back)
    object observe_call_through(object target, void *call, object args, object named)
    void observe_set_switch(object given)
    void observe_set_claim(object claim)
    int interval_hide(object reader, double set, double of_program)
    void interval_show(object reader)
    object interval_now(object reader)
    int observe_has_value(object frame, Py_ssize_t at)
    object observe_value(object frame, Py_ssize_t at)
    int observe_has_getter()
    PyObject *observe_get_variable(object frame, object name) except? NULL

cdef extern from "Python.h":
    ctypedef struct PyObject
    void Py_INCREF(object)
    void Py_DECREF(object)
    object PyLong_FromVoidPtr(void *)
    void *PyLong_AsVoidPtr(object) except? NULL

cdef object READ_INTERVAL = sys.getswitchinterval, SET_INTERVAL = sys.setswitchinterval
# Python cuts an interval to whole microseconds: without the half, one that is read and set again would lose one.
cdef double HALF_MICROSECOND = 5e-7
cdef dict objects = {}, types = {}
Py_INCREF(objects)
Py_INCREF(types)
Py_INCREF(MethodType)


cdef void share_tables():
    """Lets the C code above have the tables; they live as long as the process, like the calls that go through them."""
    global observe_objects, observe_types, observe_method_type
    observe_objects = <PyObject *> objects
    observe_types = <PyObject *> types
    observe_method_type = <PyObject *> MethodType


share_tables()
StandIn = PyType_FromSpec(&stand_in_spec)
Token = PyType_FromSpec(&token_spec)


def observe_calls(target, before, after, failed):
    """Has an object's calls seen by an observer, in place.

    Args:
        target: what is called through a pointer in itself; of Python functions only those that are called from C,
            such as `__call__` and `__next__`, before Python 3.12.
        before: called with the object and the tuple of positional arguments, before a call; it answers with anything
            that is not None, or with None if this call is of no interest.
        after: called with that answer and the result, once the call has returned.
        failed: called with that answer if the call has raised.

    Returns:
        False if it cannot be seen in place, or is observed already.
    """
    cdef void *call = observe_get(target)
    if call == NULL or is_bypassed(target):
        return False
    objects[PyLong_FromVoidPtr(<void *> target)] = before, after, failed, PyLong_FromVoidPtr(call), target
    if type(target) is FunctionType and observe_has_setter():
        observe_set_function(target, NULL)
        return True
    return bool(observe_set(target, 0))


cdef bint is_bypassed(target):
    """Whether the interpreter calls a function past its pointer, whatever calls it."""
    return type(target) is FunctionType and sys.version_info >= (3, 12) and not observe_has_setter()


def end_observing(target):
    """Has an object called as before `observe_calls`."""
    key = PyLong_FromVoidPtr(<void *> target)
    entry = objects.get(key)
    if entry is None:
        return
    cdef void *call = PyLong_AsVoidPtr(entry[3])
    if type(target) is FunctionType and observe_has_setter():
        observe_set_function(target, call)
        del objects[key]
    elif observe_put_back(target, call):
        del objects[key]


def observe_member(target, before, after, failed):
    """As `observe_calls`, for one of many objects of a type that all are called the same way, and have one observer:
    the one that was given last.  It keeps none of them alive."""
    kind = type(target)
    key = PyLong_FromVoidPtr(<void *> kind)
    known = types.get(key)
    cdef void *call = observe_get(target)
    if known is None and call == NULL:
        return False
    address = known[3] if known is not None else PyLong_FromVoidPtr(call)
    if known is None or known[:3] != (before, after, failed):
        types[key] = before, after, failed, address, kind
    if call != NULL and PyLong_AsVoidPtr(address) != call:  # it is called in another way than the others
        return False
    return call == NULL or bool(observe_set(target, 1))


def end_observing_members(kind):
    """Has all objects of a type called as before `observe_member`."""
    key = PyLong_FromVoidPtr(<void *> kind)
    if key in types:
        types[key] = None, None, None, *types[key][3:]


def divert_calls(target, change):
    """Has all calls of an object go elsewhere.

    Args:
        target: what is called through a pointer in itself, and is no Python function.
        change: makes, of something that calls the object as before, what is called instead.

    Returns:
        What ends that; None if it cannot be done.
    """
    cdef void *call = observe_divert(target, NULL)
    if call == NULL:
        return None
    key, address = PyLong_FromVoidPtr(<void *> target), PyLong_FromVoidPtr(call)
    try:
        objects[key] = change(Direct(target, address)), None, None, address, target
    except BaseException:
        observe_divert(target, call)
        raise

    def undo():
        if observe_divert(target, PyLong_AsVoidPtr(address)) != NULL:
            del objects[key]

    return undo


cdef class Direct:
    """Calls an object as it was called before its calls were diverted."""

    cdef object target, address

    def __init__(self, target, address):
        self.target, self.address = target, address

    def __call__(self, *args, **named):
        return observe_call_through(self.target, PyLong_AsVoidPtr(self.address), args, named)


def switch_interval():
    """The interpreter's switch interval, whoever has set it."""
    return interval_now(READ_INTERVAL)


def hold_switch_interval(double seconds, double of_program):
    """Sets the interpreter's switch interval, of which `sys.getswitchinterval` goes on answering the program's.

    No other thread runs Python meanwhile, so none sees a part of it.

    Args:
        seconds: the interval from now on, a whole number of microseconds that no program would choose: by it is known
            whether the program has set another one since.
        of_program: what the program has set, which it reads.
    """
    interval_show(READ_INTERVAL)
    SET_INTERVAL(seconds + HALF_MICROSECOND)
    interval_hide(READ_INTERVAL, seconds, of_program)


def end_holding_switch_interval(double seconds, double of_program):
    """Sets what the program had again.

    Returns:
        False if the program has set another interval than ours meanwhile, which stays.
    """
    interval_show(READ_INTERVAL)
    if abs(<double> READ_INTERVAL() - seconds) >= HALF_MICROSECOND:
        return False
    SET_INTERVAL(of_program + HALF_MICROSECOND)
    return True


def stand_in(original, before=None, after=None, failed=None, around=None):
    """Something that is called like a function, tells an observer, and is that function in all other respects.

    Args:
        original: the function.
        before, after, failed: as for `observe_calls`; the tuple of arguments has no names.
        around: instead of an observer: called in place of the function, with that before the arguments.
    """
    return observe_make_stand_in(StandIn, original, (before, after, failed), around)


def is_of_program(error):
    """Whether an exception that ends code of ours is the program's: a request to end it or to stop what it does, or what
    a function raised that it has for a signal.  Such a function runs on the main thread, whatever runs there."""
    return not isinstance(error, Exception) or trace_of_handler(error) is not None


def claim_for_program(error):
    """An exception of an observer without code of ours in its traceback; None if it is not the program's."""
    trace = trace_of_handler(error)
    return None if trace is None and isinstance(error, Exception) else error.with_traceback(trace)


cdef trace_of_handler(error):
    """The part of an exception's traceback that begins in a function for a signal; None if it has none."""
    cdef list known = [code_of_handler(getsignal(number)) for number in range(1, NSIG)]
    trace = error.__traceback__
    while trace is not None and not any(each is trace.tb_frame.f_code for each in known):
        trace = trace.tb_next
    return trace


cdef code_of_handler(handler):
    """The code of a function for a signal, found without running any of the program; None for what has none."""
    if type(handler) is partial:
        handler = handler.func
    if type(handler) not in (FunctionType, MethodType):
        handler = type(handler).__call__
    return getattr(getattr(handler, "__func__", handler), "__code__", None)


observe_set_claim(claim_for_program)


def keep_compiler_away(switch):
    """Switches a compiler of Python's bytecode off while observers run.

    Args:
        switch: takes what compiles, None for nothing, and returns what it was.
    """
    observe_set_switch(switch)


def builtin(call):
    """A function in C that calls something with its argument: a compiler of Python code does not look into it."""
    return observe_make_builtin(call)


def when_returned(frame, callback):
    """Calls back, once a function that runs has returned, on its thread.

    A frame that ends lets go of its `f_trace`, which does nothing else while no debugger traces.  So this must not be
    used while one does.  The function must not raise from here on: its frame then lives as long as the exception.
    """
    frame.f_trace = observe_make_token(Token, callback)


def read_locals(frame):
    """The variables of a frame, as a dict of its own; empty where they cannot be read without a trace of that."""
    code = frame.f_code
    if not code.co_flags & 1 or sys.version_info >= (3, 13):  # 1: a function, whose variables lie in no dict
        return dict(frame.f_locals)
    known = code.co_varnames
    names = (*known, *(name for name in code.co_cellvars if name not in known), *code.co_freevars)
    if sys.version_info >= (3, 12):
        return read_by_name(frame, names)
    return read_in_place(frame, names, {*code.co_cellvars, *code.co_freevars})


cdef dict read_by_name(frame, tuple names):
    cdef dict found = {}
    cdef PyObject *value
    if not observe_has_getter():
        return found
    for name in names:
        value = observe_get_variable(frame, name)
        if value != NULL:
            found[name] = <object> value
            Py_DECREF(<object> value)
    return found


cdef dict read_in_place(frame, tuple names, set in_cells):
    cdef dict found = {}
    cdef Py_ssize_t at
    if sys.implementation.name != "cpython":
        return found
    for at, name in enumerate(names):
        if not observe_has_value(frame, at):
            continue
        value = observe_value(frame, at)
        if name in in_cells and type(value) is CellType:
            try:
                value = value.cell_contents
            except ValueError:  # nothing in it yet
                continue
        found[name] = value
    return found
