"""Work on a robot's links in parallel threads: equal work once, errors with the link's name, the same result always."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import TypeVar

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError

Progress = Callable[[str, int, int], None]
T = TypeVar("T")


@contextmanager
def naming_link(link: str) -> Iterator[None]:
    """Errors raised inside say which link they are about."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(f"link '{link}': {error.name}", error.value, error.bound, error.remedy) from error
    except ResourceNotFoundError as error:
        remedy = f"The link '{link}' needs it. {error.remedy}".strip()
        raise ResourceNotFoundError(error.resource, error.searched, remedy) from error


def run_link_jobs(
    jobs: Iterable[tuple[str, str, Callable[[], T]]],
    total: int,
    workers: int | None = None,
    progress: Progress | None = None,
) -> dict[str, T]:
    """Results of jobs by link, in the order of the jobs.

    An error or an interrupt cancels the jobs that have not begun, and waits for the others. Of several errors, that
    of the first link is raised.

    Args:
        jobs: (link, key, work). Work of equal key is done once. Iterated in this thread while others already work.
        total: number of jobs.
        workers: threads, None for as many as this process has processors; never more than jobs.
        progress: called from this thread with (link, links done, links in all) after each link.

    Raises:
        InvalidInputError: fewer than one worker; or raised by a job, with the link's name.
        ResourceNotFoundError: raised by a job, with the link's name.
    """
    threads = len(os.sched_getaffinity(0)) if workers is None else workers
    if threads < 1:
        raise InvalidInputError("workers", workers, "at least 1")
    futures: dict[str, Future[T]] = {}
    keys: dict[str, str] = {}
    failed: list[int] = []

    def attempt(index: int, work: Callable[[], T]) -> T:
        # The jobs before a failed one still have their turn: which error is raised must not depend on their speed.
        if failed and index > min(failed):
            raise CancelledError
        try:
            return work()
        except BaseException:
            failed.append(index)
            raise

    pool = ThreadPoolExecutor(max(1, min(threads, total)))
    try:
        for link, key, work in jobs:
            if key not in futures:
                futures[key] = pool.submit(attempt, len(futures), work)
            keys[link] = key
        links_of: dict[Future[T], list[str]] = {future: [] for future in futures.values()}
        for link, key in keys.items():
            links_of[futures[key]].append(link)
        done = 0
        for future in as_completed(links_of):
            if future.exception() is not None:
                break
            for link in links_of[future]:
                done += 1
                if progress is not None:
                    progress(link, done, total)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    results = {}
    # One that failed comes before all that were cancelled.
    for link, key in keys.items():
        with naming_link(link):
            results[link] = futures[key].result()
    return results
