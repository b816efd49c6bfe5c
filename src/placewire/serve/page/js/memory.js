// What this browser remembers; nothing, where storage is not allowed.

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
    /** A JSON value, or the other one when there is none that can be read. */
    read: (name, otherwise) => attempt(() => JSON.parse(storage().getItem(`placewire.${name}`)) ?? otherwise, otherwise),
  };
}

export const device = over(() => localStorage);
export const tab = over(() => sessionStorage);
