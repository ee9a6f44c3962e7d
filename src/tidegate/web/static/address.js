// Addresses of the service, which can be below a path of its host.

const BASE = document.documentElement.dataset.base ?? "";

/** The URL of a path of this service. */
export const url = (path) => BASE + path;

/** The URL of the console page of something in the API: /v1/data/people/polls has the page /console/data/people/polls. */
export const pageOf = (address) => url(address.replace(/^\/v1/, "/console"));

/** The path of this page within the service. */
export const path = () => location.pathname.slice(BASE.length);
