// Values stored in this browser; none if storage is not allowed.

function attempt(work, otherwise) {
  try {
    return work();
  } catch {
    return otherwise;
  }
}

function over(storage) {
  return {
    get: (name) => attempt(() => storage().getItem(`placewire.${name}`), null),
    set: (name, value) => attempt(() => storage().setItem(`placewire.${name}`, value), undefined),
    drop: (name) => attempt(() => storage().removeItem(`placewire.${name}`), undefined),
    /** Returns a JSON value, or `otherwise` if it is missing or invalid. */
    read: (name, otherwise) => attempt(() => JSON.parse(storage().getItem(`placewire.${name}`)) ?? otherwise, otherwise),
  };
}

export const device = over(() => localStorage);
export const tab = over(() => sessionStorage);
