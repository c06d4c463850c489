"""How many threads products of matrices have is the process's setting, which others count on."""

from contextlib import ExitStack

from threadpoolctl import threadpool_info, threadpool_limits

from retrieval.similarity import single_blas_thread


def threads() -> set[int]:
    return {int(each["num_threads"]) for each in threadpool_info() if each["user_api"] == "blas"}


def test_the_last_who_wants_one_thread_gives_the_others_back() -> None:
    with threadpool_limits(2, user_api="blas"), ExitStack() as first, ExitStack() as second:
        first.enter_context(single_blas_thread())
        second.enter_context(single_blas_thread())
        assert threads() == {1}
        first.close()
        assert threads() == {1}
        second.close()
        assert threads() == {2}
